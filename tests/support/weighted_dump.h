// A dump in memory with weights and the opened value around it: one edge, its consumers, no family.
#pragma once

#include <map>

#include "core/graph/opened.h"
#include "tests/support/memory_dump.h"

namespace planish::test {

class WeightedDump : public MemoryDump {
public:
    void addWeight(const std::string &name, const MatrixD &values)
    {
        TensorEntry entry;
        entry.name = {name};
        entry.path = "/weights/" + name;
        entry.file = "memory";
        entry.shape = {values.rows(), values.cols()};
        entry.storedType = StoredType::F64;
        editInfo().weights.push_back(entry);
        m_weights[name] = values;
    }
    Expected<MatrixD> readTensor(const TensorEntry &tensor) const override
    {
        const auto found = m_weights.find(tensor.name.value);
        if (found == m_weights.end())
            return dataError(tensor.name.value, "no such tensor", "one of the test");
        return found->second;
    }

private:
    std::map<std::string, MatrixD> m_weights;
};

/// Opened dump with edge layers.0.mlp_in read by layers.0.w0, w1, …; a weight that is empty is left out of the file.
inline Opened openedOf(const MatrixD &x, const std::vector<MatrixD> &weights, const std::vector<std::int32_t> &requests = {})
{
    auto dump = std::make_shared<WeightedDump>();
    DumpEdge &stored = dump->add("layers.0.mlp_in", x, StoredType::F64, "mlp_in");
    if (!requests.empty())
        dump->setRequests(requests);
    Edge edge;
    edge.id = {"layers.0.mlp_in"};
    edge.layer = 0;
    edge.site = "mlp_in";
    edge.channels = x.cols();
    edge.rows = x.rows();
    for (std::size_t i = 0; i < weights.size(); ++i) {
        Consumer consumer;
        consumer.tensor = {"layers.0.w" + std::to_string(i)};
        consumer.role = "w" + std::to_string(i);
        consumer.present = !weights[i].empty();
        stored.consumers.push_back(consumer.tensor.value);
        edge.consumers.push_back(consumer);
        if (consumer.present)
            dump->addWeight(consumer.tensor.value, weights[i]);
    }
    Opened opened;
    opened.dump = dump;
    auto resolved = ResolvedWeights::resolve(dump, nullptr, nullptr, Prefer::None);
    if (!resolved)
        throw std::runtime_error(toText(resolved.error()));
    opened.weights = std::make_shared<const ResolvedWeights>(std::move(*resolved));
    opened.graph.edges.push_back(edge);
    return opened;
}

} // namespace planish::test
