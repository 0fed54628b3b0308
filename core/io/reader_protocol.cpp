#include "core/io/reader_protocol.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/io/byte_stream.h"

namespace planish {

namespace {

constexpr std::uint8_t kAnswer = 0, kError = 1;
constexpr unsigned kStoredTypes = static_cast<unsigned>(StoredType::Other) + 1;
constexpr unsigned kErrorCodes = static_cast<unsigned>(ErrorCode::Machine) + 1;
constexpr unsigned kRequestKinds = static_cast<unsigned>(RequestKind::Texts) + 1;
constexpr unsigned kStorageKinds = static_cast<unsigned>(StorageKind::ReaderOnly) + 1;

tl::unexpected<Error> senseless()
{
    return dataError("planish-reader", "gave an answer that makes no sense", "the reader of the same version");
}

void putPairs(ByteWriter &out, const LeftOut &pairs)
{
    out.put(std::uint64_t{pairs.size()});
    for (const auto &[first, second] : pairs) {
        out.put(std::string_view(first));
        out.put(std::string_view(second));
    }
}

void putAttributes(ByteWriter &out, const Attributes &attributes)
{
    out.put(std::uint64_t{attributes.size()});
    for (const auto &[name, value] : attributes) {
        out.put(std::string_view(name));
        out.put(static_cast<std::uint8_t>(value.index()));
        std::visit(
            [&out](const auto &held) {
                using Held = std::decay_t<decltype(held)>;
                if constexpr (std::is_arithmetic_v<Held>)
                    out.put(held);
                else if constexpr (std::is_same_v<Held, std::string>)
                    out.put(std::string_view(held));
                else
                    out.putAll(held);
            },
            value);
    }
}

AttributeValue getValue(ByteReader &in, unsigned index)
{
    switch (index) {
    case 0:
        return in.text();
    case 1:
        return in.all<std::string>();
    case 2:
        return in.get<std::int64_t>();
    case 3:
        return in.get<double>();
    case 4:
        return in.all<std::int64_t>();
    default:
        return in.all<double>();
    }
}

Attributes getAttributes(ByteReader &in)
{
    Attributes attributes;
    for (std::size_t left = in.count(9); left > 0 && !in.bad(); --left) {
        std::string name = in.text();
        const unsigned index = in.get<std::uint8_t>();
        attributes.insert_or_assign(std::move(name), getValue(in, index));
    }
    return attributes;
}

void putDataset(ByteWriter &out, const DatasetInfo &info)
{
    out.put(std::string_view(info.path));
    out.putAll(info.shape);
    out.put(static_cast<std::uint8_t>(info.type));
    out.put(static_cast<std::uint8_t>(info.order));
    out.put(std::string_view(info.typeText));
    out.putAll(info.chunk);
    out.put(std::uint64_t{info.filters.size()});
    for (const FilterInfo &filter : info.filters) {
        out.put(std::int32_t{filter.id});
        out.put(std::string_view(filter.name));
        out.put(std::uint8_t{filter.available});
        out.put(std::uint8_t{filter.lossy});
        out.putAll(filter.values);
    }
    putAttributes(out, info.attributes);
    out.put(info.storedBytes);
    out.put(info.offset);
    out.put(info.address);
    out.put(std::uint64_t{info.elementBytes});
    out.put(std::uint64_t{info.members.size()});
    for (const MemberInfo &member : info.members) {
        out.put(std::string_view(member.name));
        out.put(std::uint64_t{member.offset});
        out.put(static_cast<std::uint8_t>(member.type));
        out.put(static_cast<std::uint8_t>(member.order));
    }
    out.put(std::span<const std::byte>(info.fill));
    out.put(std::uint8_t{info.bordersUnfiltered});
}

template <class T> T getByteEnum(ByteReader &in, unsigned count)
{
    const unsigned value = in.get<std::uint8_t>();
    return value < count ? static_cast<T>(value) : T{};
}

DatasetInfo getDataset(ByteReader &in)
{
    DatasetInfo info;
    info.path = in.text();
    info.shape = in.all<std::uint64_t>();
    info.type = getByteEnum<StoredType>(in, kStoredTypes);
    info.order = getByteEnum<ByteOrder>(in, 2);
    info.typeText = in.text();
    info.chunk = in.all<std::uint64_t>();
    for (std::size_t left = in.count(22); left > 0 && !in.bad(); --left) {
        FilterInfo filter;
        filter.id = in.get<std::int32_t>();
        filter.name = in.text();
        filter.available = in.flag();
        filter.lossy = in.flag();
        filter.values = in.all<unsigned>();
        info.filters.push_back(std::move(filter));
    }
    info.attributes = getAttributes(in);
    info.storedBytes = in.get<std::uint64_t>();
    info.offset = in.get<std::int64_t>();
    info.address = in.get<std::uint64_t>();
    info.elementBytes = static_cast<std::size_t>(in.get<std::uint64_t>());
    for (std::size_t left = in.count(18); left > 0 && !in.bad(); --left) {
        MemberInfo member;
        member.name = in.text();
        member.offset = static_cast<std::size_t>(in.get<std::uint64_t>());
        member.type = getByteEnum<StoredType>(in, kStoredTypes);
        member.order = getByteEnum<ByteOrder>(in, 2);
        info.members.push_back(std::move(member));
    }
    const std::span<const std::byte> fill = in.bytes();
    info.fill.assign(fill.begin(), fill.end());
    info.bordersUnfiltered = in.flag();
    return info;
}

/// What the readers below rely on: a number has the bytes of its type, a member lies inside its record.
bool makesSense(const DatasetInfo &info)
{
    const std::size_t own = byteSize(info.type);
    const bool sized = own == 0 || own == info.elementBytes;
    const bool members = std::all_of(info.members.begin(), info.members.end(), [&](const MemberInfo &member) {
        const std::size_t size = byteSize(member.type);
        return size > 0 && size <= info.elementBytes && member.offset <= info.elementBytes - size;
    });
    return info.path.starts_with('/') && sized && members && info.shape.size() <= 64 &&
           (info.fill.empty() || info.fill.size() == info.elementBytes) &&
           std::find(info.chunk.begin(), info.chunk.end(), 0U) == info.chunk.end();
}

/// The answer behind its first byte; the error when it is one.
Expected<ByteReader> opened(std::span<const std::byte> answer)
{
    ByteReader in(answer);
    const auto kind = in.get<std::uint8_t>();
    if (in.bad() || kind > kError)
        return senseless();
    if (kind == kAnswer)
        return in;
    Error error;
    error.code = getByteEnum<ErrorCode>(in, kErrorCodes);
    error.subject = in.text();
    error.what = in.text();
    error.expected = in.text();
    error.rule = in.text();
    if (!in.complete())
        return senseless();
    return tl::make_unexpected(std::move(error));
}

ByteWriter startAnswer()
{
    ByteWriter out;
    out.put(kAnswer);
    return out;
}

} // namespace

std::string markOf(ReaderStep step, std::string_view path)
{
    std::string mark(1, static_cast<char>('0' + static_cast<int>(step)));
    return mark.append(path);
}

std::string pathOfMark(std::string_view mark)
{
    return std::string(mark.empty() ? mark : mark.substr(1));
}

std::vector<std::byte> encode(const Request &request)
{
    ByteWriter out;
    out.put(static_cast<std::uint8_t>(request.kind));
    if (request.kind == RequestKind::Open) {
        out.put(std::string_view(request.open.path));
        out.put(std::uint8_t{request.open.options.trustLinks});
        out.put(std::uint8_t{request.open.options.noLock});
        out.put(std::uint8_t{request.open.wantStructure});
        putPairs(out, request.open.leftOut);
    } else {
        out.put(std::string_view(request.box.path));
        out.putAll(request.box.start);
        out.putAll(request.box.count);
    }
    return out.take();
}

Expected<Request> decodeRequest(std::span<const std::byte> bytes)
{
    ByteReader in(bytes);
    Request request;
    request.kind = in.getEnum<RequestKind>(kRequestKinds);
    if (request.kind == RequestKind::Open) {
        request.open.path = in.text();
        request.open.options.trustLinks = in.flag();
        request.open.options.noLock = in.flag();
        request.open.wantStructure = in.flag();
        for (std::size_t left = in.count(16); left > 0 && !in.bad(); --left) {
            std::string mark = in.text();
            request.open.leftOut.emplace_back(std::move(mark), in.text());
        }
    } else {
        request.box.path = in.text();
        request.box.start = in.all<std::uint64_t>();
        request.box.count = in.all<std::uint64_t>();
    }
    if (!in.complete() || request.box.start.size() != request.box.count.size())
        return dataError("planish-reader", "was asked something that makes no sense", "a request of the same version");
    return request;
}

std::vector<std::byte> encodeError(const Error &error)
{
    ByteWriter out;
    out.put(kError);
    out.put(static_cast<std::uint8_t>(error.code));
    for (const std::string *text : {&error.subject, &error.what, &error.expected, &error.rule})
        out.put(std::string_view(*text));
    return out.take();
}

std::vector<std::byte> encode(const FileStructure &structure)
{
    ByteWriter out = startAnswer();
    out.put(std::string_view(structure.file));
    out.put(std::string_view(structure.format));
    out.put(std::uint64_t{structure.groups.size()});
    for (const auto &[path, attributes] : structure.groups) {
        out.put(std::string_view(path));
        putAttributes(out, attributes);
    }
    out.put(std::uint64_t{structure.datasets.size()});
    for (const DatasetInfo &dataset : structure.datasets)
        putDataset(out, dataset);
    LeftOut refused;
    for (const RefusedObject &object : structure.refused)
        refused.emplace_back(object.path, object.reason);
    putPairs(out, refused);
    out.putAll(structure.notes);
    putPairs(out, LeftOut(structure.aliases.begin(), structure.aliases.end()));
    return out.take();
}

Expected<FileStructure> decodeStructure(std::span<const std::byte> answer)
{
    Expected<ByteReader> in = opened(answer);
    if (!in)
        return tl::make_unexpected(in.error());
    FileStructure structure;
    structure.file = in->text();
    structure.format = in->text();
    for (std::size_t left = in->count(16); left > 0 && !in->bad(); --left) {
        std::string path = in->text();
        structure.groups.insert_or_assign(std::move(path), getAttributes(*in));
    }
    bool sense = true;
    for (std::size_t left = in->count(64); left > 0 && !in->bad(); --left) {
        structure.datasets.push_back(getDataset(*in));
        sense = sense && makesSense(structure.datasets.back());
    }
    for (std::size_t left = in->count(16); left > 0 && !in->bad(); --left) {
        std::string path = in->text();
        structure.refused.push_back({std::move(path), in->text()});
    }
    structure.notes = in->all<std::string>();
    for (std::size_t left = in->count(16); left > 0 && !in->bad(); --left) {
        std::string path = in->text();
        structure.aliases.insert_or_assign(std::move(path), in->text());
    }
    if (!in->complete() || !sense)
        return senseless();
    return structure;
}

std::vector<std::byte> encode(const StorageMap &map)
{
    ByteWriter out = startAnswer();
    out.put(static_cast<std::uint8_t>(map.kind));
    out.put(map.offset);
    out.put(std::uint8_t{map.complete});
    out.put(std::uint64_t{map.chunks.size()});
    for (const ChunkEntry &chunk : map.chunks) {
        out.put(chunk.number);
        out.put(chunk.offset);
        out.put(chunk.bytes);
        out.put(chunk.skippedFilters);
    }
    return out.take();
}

Expected<StorageMap> decodeStorage(std::span<const std::byte> answer)
{
    Expected<ByteReader> in = opened(answer);
    if (!in)
        return tl::make_unexpected(in.error());
    StorageMap map;
    map.kind = in->getEnum<StorageKind>(kStorageKinds);
    map.offset = in->get<std::uint64_t>();
    map.complete = in->flag();
    map.chunks.resize(in->count(24));
    for (ChunkEntry &chunk : map.chunks) {
        chunk.number = in->get<std::uint64_t>();
        chunk.offset = in->get<std::uint64_t>();
        chunk.bytes = in->get<std::uint32_t>();
        chunk.skippedFilters = in->get<std::uint32_t>();
    }
    if (!in->complete())
        return senseless();
    return map;
}

std::vector<std::byte> encode(const std::vector<std::string> &texts)
{
    ByteWriter out = startAnswer();
    out.putAll(texts);
    return out.take();
}

Expected<std::vector<std::string>> decodeTexts(std::span<const std::byte> answer)
{
    Expected<ByteReader> in = opened(answer);
    if (!in)
        return tl::make_unexpected(in.error());
    std::vector<std::string> texts = in->all<std::string>();
    if (!in->complete())
        return senseless();
    return texts;
}

std::vector<std::byte> encodeBytes(std::span<const std::byte> bytes)
{
    ByteWriter out = startAnswer();
    out.put(bytes);
    return out.take();
}

Expected<void> decodeBytes(std::span<const std::byte> answer, std::span<std::byte> out)
{
    Expected<ByteReader> in = opened(answer);
    if (!in)
        return tl::make_unexpected(in.error());
    const std::span<const std::byte> bytes = in->bytes();
    if (!in->complete() || bytes.size() != out.size())
        return senseless();
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return {};
}

} // namespace planish
