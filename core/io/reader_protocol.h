// What this program and its reader process say to each other: requests, answers and the page that tells where the reader is.
// Both are the same build on the same machine, so numbers travel as they are; answers are checked as if a stranger wrote them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/io/file_structure.h"

namespace planish {

/// File descriptors of the reader process: its end of the socket, and the page it writes its progress to.
constexpr int kReaderSocket = 3, kReaderPage = 4;

/// Longest answer that is accepted.
constexpr std::uint64_t kLongestAnswer = std::uint64_t{1} << 30;

/// Shared with the reader: what it works on, and a count that rises while it gets on.
struct ReaderPage {
    std::atomic<std::uint64_t> steps{0};
    std::array<char, 4088> place{}; ///< a mark (see markOf), cut to fit, ends with zero
};

/// One thing a reader does with an object of the file; what it died over is left out when the file is read again.
enum class ReaderStep : std::uint8_t { Open, Attributes, Members, Object, Link };
std::string markOf(ReaderStep step, std::string_view path);
/// Path inside the file that a mark names.
std::string pathOfMark(std::string_view mark);

/// Why a mark is left out, by mark.
using LeftOut = std::vector<std::pair<std::string, std::string>>;

struct OpenMessage {
    std::string path;
    OpenOptions options;
    bool wantStructure = true;
    LeftOut leftOut;
};

enum class StorageKind : std::uint8_t {
    Contiguous, ///< bytes lie together at `offset`
    Chunked,    ///< `chunks` say where each lies
    ReaderOnly  ///< only the library can read it (virtual, external, compact, filters of its own)
};

/// One stored chunk: the number of its place in the row-major grid of chunks.
struct ChunkEntry {
    std::uint64_t number = 0, offset = 0;
    std::uint32_t bytes = 0, skippedFilters = 0;
};

/// Where the bytes of a dataset lie in the file, compared with what the library reads there.
struct StorageMap {
    StorageKind kind = StorageKind::ReaderOnly;
    std::uint64_t offset = 0;
    bool complete = true; ///< `chunks` are all that are stored; else only those of the box that was asked for
    std::vector<ChunkEntry> chunks;
};

/// A box of a dataset; empty lists mean the whole of it.
struct BoxMessage {
    std::string path;
    std::vector<std::uint64_t> start, count;
};

enum class RequestKind : std::uint8_t { Open, Storage, Box, Texts };

struct Request {
    RequestKind kind = RequestKind::Open;
    OpenMessage open; ///< of Open
    BoxMessage box;   ///< of the others
};

std::vector<std::byte> encode(const Request &request);
Expected<Request> decodeRequest(std::span<const std::byte> bytes);

/// Answers: an error, or the value the request asks for.
std::vector<std::byte> encodeError(const Error &error);
std::vector<std::byte> encode(const FileStructure &structure);
std::vector<std::byte> encode(const StorageMap &map);
std::vector<std::byte> encode(const std::vector<std::string> &texts);
std::vector<std::byte> encodeBytes(std::span<const std::byte> bytes);

/// The error of an answer that is one, or an error about an answer that makes no sense.
Expected<FileStructure> decodeStructure(std::span<const std::byte> answer);
Expected<StorageMap> decodeStorage(std::span<const std::byte> answer);
Expected<std::vector<std::string>> decodeTexts(std::span<const std::byte> answer);
/// Copies exactly `out.size()` bytes.
Expected<void> decodeBytes(std::span<const std::byte> answer, std::span<std::byte> out);

} // namespace planish
