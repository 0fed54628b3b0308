// The bytes of a `.stats` file: a magic line, then 8-byte little-endian numbers, texts and arrays with their counts in front.
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/measure/statistics_file.h"

namespace planish
{

namespace
{

static_assert(std::endian::native == std::endian::little, "the arrays are written as they stand in memory");

constexpr std::string_view kMagic = "planish-stats/1\n";

template <class T> std::uint64_t toWord(T value)
{
    if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<std::uint64_t>(value);
    else
        return static_cast<std::uint64_t>(value);
}

template <class T> T fromWord(std::uint64_t word)
{
    if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<double>(word);
    else
        return static_cast<T>(word);
}

class Writer
{
public:
    explicit Writer(std::string &out) : m_out(out) {}

    template <class T> void number(T &value)
    {
        const std::uint64_t word = toWord(value);
        m_out.append(reinterpret_cast<const char *>(&word), sizeof word);
    }
    void text(std::string &value)
    {
        count(value.size());
        m_out.append(value);
    }
    template <class T> void array(std::vector<T> &values)
    {
        count(values.size());
        for (T value : values)
            number(value);
    }
    std::size_t count(std::size_t size)
    {
        number(size);
        return size;
    }

private:
    std::string &m_out;
};

// Reading past the end sets `failed` and gives zeros; the caller asks once.
class Reader
{
public:
    explicit Reader(std::string_view in) : m_in(in) {}

    bool failed() const { return m_failed; }
    bool atEnd() const { return m_in.empty(); }
    template <class T> void number(T &value) { value = fromWord<T>(word()); }
    void text(std::string &value)
    {
        const std::size_t size = bounded(1);
        value = m_in.substr(0, size);
        m_in.remove_prefix(size);
    }
    template <class T> void array(std::vector<T> &values)
    {
        values.resize(bounded(8));
        for (T &value : values)
            number(value);
    }
    std::size_t count(std::size_t) { return bounded(8); }

private:
    std::size_t bounded(std::size_t bytesEach)
    {
        const std::uint64_t size = word();
        m_failed = m_failed || size > m_in.size() / bytesEach;
        return m_failed ? 0 : static_cast<std::size_t>(size);
    }
    std::uint64_t word()
    {
        std::uint64_t value = 0;
        if (m_in.size() < sizeof value) {
            m_failed = true;
            m_in = {};
            return 0;
        }
        std::memcpy(&value, m_in.data(), sizeof value);
        m_in.remove_prefix(sizeof value);
        return value;
    }
    std::string_view m_in;
    bool m_failed = false;
};

template <class Archive> void exchange(Archive &archive, Moments &m)
{
    archive.number(m.n);
    for (double *value : {&m.mean, &m.m2, &m.m3, &m.m4})
        archive.number(*value);
}

template <class Archive> void exchange(Archive &archive, ChannelSums &c)
{
    for (auto *values : {&c.maxAbs, &c.minimum, &c.maximum, &c.sum, &c.sumAbs, &c.energy})
        archive.array(*values);
    for (auto *counts : {&c.overTau, &c.overTauOrEqual, &c.finite, &c.nonFinite})
        archive.array(*counts);
    c.moments.resize(archive.count(c.moments.size()));
    for (Moments &m : c.moments)
        exchange(archive, m);
}

template <class Archive> void exchange(Archive &archive, Statistics &s)
{
    for (auto *value : {&s.rowsInFile, &s.masked, &s.skipped, &s.tokens, &s.channels, &s.zeroRows, &s.nonFinite, &s.aboveHalf})
        archive.number(*value);
    for (auto *value : {&s.tau, &s.maxAbs, &s.argmaxValue, &s.medianAbs, &s.incoherenceSum, &s.incoherenceMax})
        archive.number(*value);
    for (auto *value : {&s.argmaxRow, &s.argmaxChannel, &s.firstNonFiniteRow, &s.firstNonFiniteChannel})
        archive.number(*value);
    auto kind = static_cast<std::uint64_t>(s.kind), exact = static_cast<std::uint64_t>(s.medianExact);
    archive.number(kind);
    archive.number(exact);
    s.kind = static_cast<StoredKind>(kind);
    s.medianExact = exact != 0;
    s.histogramBf16 = s.kind == StoredKind::Bf16;
    exchange(archive, s.tensor);
    exchange(archive, s.channel);
    archive.array(s.token.row);
    for (auto *values : {&s.token.maxAbs, &s.token.energy, &s.token.incoherence})
        archive.array(*values);
    archive.array(s.token.overTau);
    archive.array(s.token.request);
    archive.array(s.token.position);
    archive.array(s.histogram);
    archive.array(s.coarseHistogram);
    s.thresholds.resize(archive.count(s.thresholds.size()));
    for (ThresholdCounts &counts : s.thresholds) {
        archive.number(counts.threshold);
        archive.array(counts.over);
        archive.array(counts.overOrEqual);
    }
}

template <class Archive> void exchange(Archive &archive, StoredStatistics &e)
{
    archive.text(e.edge.value);
    archive.number(e.layer);
    archive.text(e.site);
    archive.text(e.dtype);
    exchange(archive, e.statistics);
}

template <class Archive> void exchangeHead(Archive &archive, StatisticsFile &file)
{
    archive.text(file.file);
    archive.text(file.fileKey);
    archive.number(file.tau);
    auto phase = static_cast<std::uint64_t>(file.phase), part = static_cast<std::uint64_t>(file.part);
    archive.number(phase);
    archive.number(part);
    file.phase = static_cast<Phase>(phase);
    file.part = static_cast<Part>(part);
    archive.array(file.skipPositions);
    archive.array(file.skipIds);
}

bool consistent(const Statistics &s)
{
    const std::size_t k = s.channels, m = s.token.row.size();
    const ChannelSums &c = s.channel;
    for (const auto *values : {&c.maxAbs, &c.minimum, &c.maximum, &c.sum, &c.sumAbs, &c.energy})
        if (values->size() != k)
            return false;
    for (const auto *counts : {&c.overTau, &c.overTauOrEqual, &c.finite, &c.nonFinite})
        if (counts->size() != k)
            return false;
    for (const auto *values : {&s.token.maxAbs, &s.token.energy, &s.token.incoherence})
        if (values->size() != m)
            return false;
    for (const ThresholdCounts &counts : s.thresholds)
        if (counts.over.size() != k || counts.overOrEqual.size() != k)
            return false;
    const auto bins = [](const auto &counts) { return counts.empty() || counts.size() == 65536; };
    for (const auto *labels : {&s.token.request, &s.token.position})
        if (!labels->empty() && labels->size() != m)
            return false;
    return c.moments.size() == k && s.token.overTau.size() == m && bins(s.histogram) && bins(s.coarseHistogram) &&
           s.kind <= StoredKind::F64;
}

} // namespace

std::string encodeStatistics(const StatisticsFile &file)
{
    std::string out(kMagic);
    Writer writer(out);
    StatisticsFile head{file.file, file.fileKey, file.tau, file.phase, file.skipPositions, file.skipIds, file.part, {}};
    exchangeHead(writer, head);
    writer.count(file.edges.size());
    for (StoredStatistics edge : file.edges)
        exchange(writer, edge);
    return out;
}

Expected<StatisticsFile> decodeStatistics(std::string_view bytes, const std::string &subject)
{
    if (!bytes.starts_with(kMagic))
        return dataError(subject, "this is not a statistics file", "a file written by --save-stats");
    Reader reader(bytes.substr(kMagic.size()));
    StatisticsFile file;
    exchangeHead(reader, file);
    const std::size_t edges = reader.count(0);
    for (std::size_t e = 0; e < edges && !reader.failed(); ++e) {
        exchange(reader, file.edges.emplace_back());
        if (!reader.failed() && !consistent(file.edges.back().statistics))
            return dataError(subject, "the arrays of edge " + file.edges.back().edge.value + " do not fit each other",
                             "a file written by --save-stats");
    }
    if (reader.failed() || !reader.atEnd() || file.phase > Phase::Both || file.part > Part::All)
        return dataError(subject, "the file is damaged or cut short", "a file written by --save-stats");
    return file;
}

} // namespace planish
