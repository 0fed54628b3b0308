// Reading the header: an event parser (no recursion, so depth costs nothing) that knows the three levels the format has.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "core/io/printable.h"
#include "core/io/raw_file.h"
#include "core/io/safetensors.h"
#include "core/io/safetensors_dtype.h"

namespace planish {

namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

struct RawEntry {
    std::string name, dtype;
    std::vector<std::uint64_t> shape, offsets;
    bool hasDtype = false, hasShape = false, hasOffsets = false;
};

/// Collects entries; the first thing the format does not allow stops the parse with a sentence.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
public:
    std::vector<RawEntry> entries;
    std::map<std::string, std::string> metadata;
    std::string fault;

    bool null() override { return wrong("null"); }
    bool boolean(bool) override { return wrong("a boolean"); }
    bool binary(binary_t &) override { return wrong("binary data"); }
    bool number_integer(number_integer_t value) override { return wrong("the negative number " + std::to_string(value)); }
    bool number_float(number_float_t, const string_t &text) override { return wrong("the fraction " + printable(text)); }
    bool number_unsigned(number_unsigned_t value) override
    {
        if (!m_inArray)
            return wrong("the number " + std::to_string(value));
        (m_field == "shape" ? entries.back().shape : entries.back().offsets).push_back(value);
        return true;
    }
    bool string(string_t &text) override
    {
        if (m_depth == 2 && m_inMetadata)
            return metadata.emplace(m_field, text).second || fail("metadata has the duplicate key " + printable(m_field));
        if (m_depth != 2 || m_inArray || m_field != "dtype")
            return wrong("a text");
        entries.back().dtype = text;
        return entries.back().hasDtype = true;
    }
    bool start_object(std::size_t) override
    {
        if (m_inArray || m_depth > 1 || (m_depth == 1 && m_name.empty() && !m_hasName))
            return fail("header is nested too deep" + where());
        ++m_depth;
        return true;
    }
    bool end_object() override
    {
        --m_depth;
        return true;
    }
    bool key(string_t &text) override { return m_depth == 1 ? beginEntry(text) : beginField(text); }
    bool start_array(std::size_t) override
    {
        const bool expected = m_depth == 2 && !m_inArray && !m_inMetadata && (m_field == "shape" || m_field == "data_offsets");
        if (!expected)
            return m_inArray || m_depth > 2 ? fail("header is nested too deep" + where()) : wrong("a list");
        m_inArray = true;
        (m_field == "shape" ? entries.back().hasShape : entries.back().hasOffsets) = true;
        return true;
    }
    bool end_array() override
    {
        m_inArray = false;
        return true;
    }
    bool parse_error(std::size_t position, const std::string &, const nlohmann::detail::exception &) override
    {
        return fail("header is no valid JSON at byte " + std::to_string(position));
    }

private:
    std::string where() const { return m_hasName ? " at " + printable(m_name) : std::string(); }
    bool fail(std::string text)
    {
        if (fault.empty())
            fault = std::move(text);
        return false;
    }
    bool wrong(const std::string &found)
    {
        return fail("header" + (m_hasName ? ", tensor " + printable(m_name) : std::string()) +
                    (m_depth == 2 ? ": " + printable(m_field) : std::string()) + " holds " + found);
    }
    bool beginEntry(const std::string &name)
    {
        m_name = name;
        m_hasName = true;
        m_inMetadata = name == kMetadata;
        if (!m_names.insert(name).second)
            return fail("header has the duplicate name " + printable(name));
        if (!m_inMetadata)
            entries.push_back({name, {}, {}, {}});
        return true;
    }
    bool beginField(const std::string &field)
    {
        m_field = field;
        if (m_inMetadata)
            return true;
        const RawEntry &entry = entries.back();
        const bool again = (field == "dtype" && entry.hasDtype) || (field == "shape" && entry.hasShape) ||
                           (field == "data_offsets" && entry.hasOffsets);
        if (again)
            return fail("header, tensor " + printable(m_name) + " has the duplicate key " + field);
        const bool known = field == "dtype" || field == "shape" || field == "data_offsets";
        return known || fail("header, tensor " + printable(m_name) + " has the unknown key " + printable(field));
    }

    std::set<std::string> m_names;
    std::string m_name, m_field;
    int m_depth = 0;
    bool m_inArray = false, m_inMetadata = false, m_hasName = false;
};

/// One entry against its own numbers and the length of the buffer.
Expected<StoredTensor> checkEntry(const std::string &path, const RawEntry &entry, std::uint64_t dataBegin,
                                  std::uint64_t bufferBytes)
{
    const std::string who = "tensor " + printable(entry.name);
    if (!entry.hasDtype || !entry.hasShape || entry.offsets.size() != 2)
        return dataError(path, who + " lacks dtype, shape or two data_offsets", "all three");
    const std::optional<SafetensorsDtype> dtype = safetensorsDtype(entry.dtype);
    if (!dtype)
        return dataError(path, who + " has the unknown dtype " + printable(entry.dtype),
                         "a dtype of the safetensors format, such as F16");
    const std::uint64_t begin = entry.offsets[0];
    const std::uint64_t end = entry.offsets[1];
    if (end > bufferBytes)
        return dataError(path, who + " ends at byte " + std::to_string(end) + ", past the end of the data",
                         "at most " + std::to_string(bufferBytes) + "; the file is truncated or its header wrong");
    std::vector<std::uint64_t> factors = entry.shape;
    factors.push_back(dtype->bits);
    std::uint64_t bits = 0;
    if (!productFits(factors, UINT64_MAX, &bits))
        return dataError(path, who + " has a shape " + shapeText(entry.shape) + " that overflows 64 bits",
                         "a shape that fits the file");
    if (begin > end || bits % 8 != 0 || bits / 8 != end - begin)
        return dataError(path,
                         who + " has a range of " + (begin > end ? "negative length" : std::to_string(end - begin) + " bytes"),
                         "size " + std::to_string(bits / 8) + " of shape " + shapeText(entry.shape) + " in " + entry.dtype);
    return StoredTensor{entry.name, path, entry.shape, dtype->type, dataBegin + begin, end - begin};
}

/// Contiguous: no hole, no overlap, nothing behind the last tensor.
Expected<void> checkCoverage(const std::string &path, std::vector<StoredTensor> &tensors, std::uint64_t dataBegin,
                             std::uint64_t fileBytes)
{
    std::sort(tensors.begin(), tensors.end(), [](const StoredTensor &a, const StoredTensor &b) {
        return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    });
    std::uint64_t at = dataBegin;
    const StoredTensor *previous = nullptr;
    for (const StoredTensor &tensor : tensors) {
        const std::string who = "tensor " + printable(tensor.name);
        if (tensor.offset < at)
            return dataError(path, who + " overlaps " + printable(previous != nullptr ? previous->name : "the header"),
                             "tensors one behind the other");
        if (tensor.offset > at)
            return dataError(path, "hole of " + std::to_string(tensor.offset - at) + " bytes before " + who,
                             "tensors without gaps");
        at = tensor.offset + tensor.bytes;
        previous = &tensor;
    }
    if (at != fileBytes)
        return dataError(path, std::to_string(fileBytes - at) + " bytes behind the last tensor belong to none",
                         "a buffer the header covers");
    return {};
}

Expected<std::string> readHeaderText(const RawFile &file)
{
    std::array<std::byte, 8> length{};
    if (file.size() < length.size())
        return dataError(file.path(), "is too short to hold a safetensors header (" + std::to_string(file.size()) + " bytes)",
                         "eight bytes of header length, then the header");
    if (Expected<void> read = file.read(0, length); !read)
        return tl::make_unexpected(read.error());
    std::uint64_t bytes = 0;
    for (std::size_t i = length.size(); i-- > 0;)
        bytes = bytes << 8 | static_cast<std::uint64_t>(length[i]);
    if (bytes > kLongestHeader)
        return dataError(file.path(), "header length " + std::to_string(bytes) + " is not that of safetensors",
                         "at most " + std::to_string(kLongestHeader) + " bytes");
    if (bytes > file.size() - length.size())
        return dataError(file.path(),
                         "header claims " + std::to_string(bytes) + " bytes, the file holds " +
                             std::to_string(file.size() - length.size()) + " (truncated)",
                         "the complete file");
    std::string text(static_cast<std::size_t>(bytes), '\0');
    if (Expected<void> read = file.read(length.size(), std::as_writable_bytes(std::span(text.data(), text.size()))); !read)
        return tl::make_unexpected(read.error());
    if (text.empty() || text.front() != '{')
        return dataError(file.path(), "header does not begin with {", "a JSON object");
    return text;
}

} // namespace

Expected<SafetensorsHeader> readSafetensorsHeader(const std::string &path)
{
    const Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    const Expected<std::string> text = readHeaderText(*file);
    if (!text)
        return tl::make_unexpected(text.error());
    HeaderEvents events;
    if (!nlohmann::json::sax_parse(*text, &events) || !events.fault.empty())
        return dataError(path, events.fault.empty() ? "header is no valid JSON" : events.fault,
                         "a safetensors header: name -> {dtype, shape, data_offsets}");
    SafetensorsHeader header;
    header.metadata = std::move(events.metadata);
    header.dataBegin = 8 + text->size();
    for (const RawEntry &entry : events.entries) {
        Expected<StoredTensor> tensor = checkEntry(path, entry, header.dataBegin, file->size() - header.dataBegin);
        if (!tensor)
            return tl::make_unexpected(tensor.error());
        header.tensors.push_back(std::move(*tensor));
    }
    if (Expected<void> covered = checkCoverage(path, header.tensors, header.dataBegin, file->size()); !covered)
        return tl::make_unexpected(covered.error());
    return header;
}

} // namespace planish
