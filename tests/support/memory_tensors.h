// Tensors in memory for tests: a checkpoint under stored names, and a dump with edges, weights, biases and norms. Values from
// wavyMatrix.
#pragma once

#include <algorithm>
#include <functional>

#include "core/io/checkpoint.h"
#include "tests/support/memory_dump.h"

namespace planish::test {

class MemoryCheckpoint : public Checkpoint {
public:
    MemoryCheckpoint() { m_info.path = "memory.safetensors"; }
    /// `values` [rows, cols] row-major; `shape` may be a vector, a matrix or a stack with the same number of elements.
    void add(const std::string &name, const MatrixD &values, std::vector<std::uint64_t> shape)
    {
        StoredTensor tensor;
        tensor.name = name;
        tensor.shape = std::move(shape);
        tensor.type = StoredType::F64;
        m_info.tensors.push_back(tensor);
        std::sort(m_info.tensors.begin(), m_info.tensors.end(),
                  [](const StoredTensor &a, const StoredTensor &b) { return a.name < b.name; });
        m_values[name] = values;
    }
    void addWavy(const std::string &name, std::vector<std::uint64_t> shape)
    {
        std::uint64_t count = 1;
        for (const std::uint64_t side : shape)
            count *= side;
        add(name, wavyMatrix(1, count, std::hash<std::string>{}(name) % 1000 + 1), std::move(shape));
    }
    CheckpointInfo &editInfo() { return m_info; }
    const CheckpointInfo &info() const override { return m_info; }
    Expected<std::vector<std::byte>> readRaw(const StoredTensor &tensor) const override
    {
        return dataError(tensor.name, "has no bytes here", "a matrix");
    }
    Expected<MatrixD> readMatrix(const StoredTensor &tensor) const override
    {
        const MatrixD &values = m_values.at(tensor.name);
        const bool vector = tensor.shape.size() < 2;
        MatrixD out(vector ? 1 : tensor.shape[0], vector ? values.size() : tensor.shape[1]);
        if (out.size() != values.size())
            return dataError(tensor.name, "has another number of elements", "the shape it was added with");
        std::copy(values.values().begin(), values.values().end(), out.data());
        return out;
    }

private:
    CheckpointInfo m_info;
    std::map<std::string, MatrixD> m_values;
};

/// A dump whose tensors are given; edges carry no rows that anyone reads.
class TensorDump : public MemoryDump {
public:
    TensorDump() { editInfo().layout = "native"; }
    DumpEdge &edge(const std::string &id, std::int64_t layer, const std::string &site, std::size_t channels,
                   const std::string &producer = {}, const std::vector<std::string> &consumers = {})
    {
        DumpEdge edge;
        edge.id = {id};
        edge.layer = layer;
        edge.site = site;
        edge.rows = 4;
        edge.channels = channels;
        edge.producer = producer;
        edge.consumers = consumers;
        editInfo().edges.push_back(edge);
        return editInfo().edges.back();
    }
    void weight(const std::string &name, const MatrixD &values, const std::string &bias = {})
    {
        TensorEntry entry;
        entry.name = {name};
        entry.path = "/weights/" + name;
        entry.shape = {values.rows(), values.cols()};
        entry.storedType = StoredType::F64;
        entry.bias = bias;
        m_tensors[entry.path] = values;
        editInfo().weights.push_back(entry);
    }
    void bias(const std::string &name, const MatrixD &values)
    {
        TensorEntry entry;
        entry.name = {name};
        entry.path = "/biases/" + name;
        entry.shape = {values.cols()};
        entry.storedType = StoredType::F64;
        m_tensors[entry.path] = values;
        editInfo().biases.push_back(entry);
    }
    Expected<MatrixD> readTensor(const TensorEntry &tensor) const override
    {
        const auto found = m_tensors.find(tensor.path);
        if (found == m_tensors.end())
            return dataError(tensor.path, "is not here", "a tensor that was added");
        if (!tensor.transposed)
            return found->second;
        MatrixD out(found->second.cols(), found->second.rows());
        for (std::size_t r = 0; r < out.rows(); ++r)
            for (std::size_t c = 0; c < out.cols(); ++c)
                out(r, c) = found->second(c, r);
        return out;
    }

private:
    std::map<std::string, MatrixD> m_tensors;
};

} // namespace planish::test
