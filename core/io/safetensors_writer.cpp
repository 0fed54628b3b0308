#include <nlohmann/json.hpp>

#include <utility>

#include "core/io/printable.h"
#include "core/io/safetensors.h"

namespace planish {

namespace {

std::uint64_t bytesOf(const TensorSpec &spec)
{
    std::uint64_t count = 0;
    productFits(spec.shape, UINT64_MAX, &count);
    return count * byteSize(spec.type);
}

std::string quoted(const std::string &text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Written by hand in the order of the data: a JSON object of the library would sort the names.
Expected<std::string> headerText(const std::string &path, const std::vector<TensorSpec> &specs,
                                 const std::map<std::string, std::string> &metadata)
{
    std::string text = "{";
    if (!metadata.empty()) {
        text += "\"__metadata__\":{";
        for (const auto &[key, value] : metadata)
            text.append(text.back() == '{' ? "" : ",").append(quoted(key)).append(":").append(quoted(value));
        text += "}";
    }
    std::uint64_t at = 0;
    for (const TensorSpec &spec : specs) {
        const std::string_view dtype = safetensorsName(spec.type);
        std::vector<std::uint64_t> factors = spec.shape;
        factors.push_back(byteSize(spec.type));
        if (dtype.empty() || !productFits(factors, UINT64_MAX))
            return dataError(path, "tensor " + printable(spec.name) + " cannot be written as " + std::string(nameOf(spec.type)),
                             "a dtype of safetensors and a shape that fits 64 bits");
        const std::uint64_t end = at + bytesOf(spec);
        std::string shape;
        for (const std::uint64_t extent : spec.shape)
            shape.append(shape.empty() ? "" : ",").append(std::to_string(extent));
        text.append(text.size() == 1 ? "" : ",").append(quoted(spec.name)).append(":{\"dtype\":\"").append(dtype);
        text.append("\",\"shape\":[").append(shape).append("],\"data_offsets\":[");
        text.append(std::to_string(at)).append(",").append(std::to_string(end)).append("]}");
        at = end;
    }
    text += "}";
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
}

} // namespace

SafetensorsWriter::SafetensorsWriter(std::string path, AtomicFile file, std::vector<TensorSpec> specs)
    : m_path(std::move(path)), m_file(std::move(file)), m_specs(std::move(specs))
{
    skipFinished();
}

void SafetensorsWriter::skipFinished()
{
    while (m_next < m_specs.size() && m_written == bytesOf(m_specs[m_next])) {
        ++m_next;
        m_written = 0;
    }
}

Expected<SafetensorsWriter> SafetensorsWriter::create(const std::string &path, std::vector<TensorSpec> specs,
                                                      const std::map<std::string, std::string> &metadata)
{
    const Expected<std::string> header = headerText(path, specs, metadata);
    if (!header)
        return tl::make_unexpected(header.error());
    Expected<AtomicFile> file = AtomicFile::create(path);
    if (!file)
        return tl::make_unexpected(file.error());
    std::string length(8, '\0');
    for (std::size_t i = 0; i < length.size(); ++i)
        length[i] = static_cast<char>(header->size() >> (8 * i) & 0xFF);
    if (Expected<void> written = file->write(length + *header); !written)
        return tl::make_unexpected(written.error());
    return SafetensorsWriter(path, std::move(*file), std::move(specs));
}

Expected<void> SafetensorsWriter::append(std::span<const std::byte> bytes)
{
    if (bytes.empty())
        return {};
    if (m_next >= m_specs.size() || bytes.size() > bytesOf(m_specs[m_next]) - m_written)
        return dataError(m_path, "more bytes than the tensors have", "as many as the shapes say");
    if (Expected<void> written = m_file.write(bytes); !written)
        return written;
    m_written += bytes.size();
    skipFinished();
    return {};
}

Expected<void> SafetensorsWriter::writeTensor(std::string_view name, std::span<const std::byte> bytes)
{
    // Empty tensors are skipped when their turn comes.
    if (bytes.empty())
        return {};
    if (m_next >= m_specs.size() || m_specs[m_next].name != name || m_written != 0 || bytes.size() != bytesOf(m_specs[m_next]))
        return dataError(m_path, "tensor " + printable(name) + " of " + std::to_string(bytes.size()) + " bytes out of turn",
                         m_next < m_specs.size() ? printable(m_specs[m_next].name) : "no more tensors");
    return append(bytes);
}

Expected<void> SafetensorsWriter::finish()
{
    if (m_next < m_specs.size())
        return dataError(m_path, "tensor " + printable(m_specs[m_next].name) + " was not written", "all tensors of the header");
    return m_file.commit();
}

} // namespace planish
