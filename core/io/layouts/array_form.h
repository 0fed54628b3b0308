// What the axes of one stored array are, from its shape, its name and what lies beside it; or which two readings are left open.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/layouts/axis.h"
#include "core/io/layouts/foreign_names.h"

namespace planish {

struct ArrayForm {
    std::string_view key;       ///< layout the array belongs to; empty: no activation
    Axes axes;                  ///< when decided
    std::string reason;         ///< why
    std::vector<Axes> readings; ///< when undecided: both
    std::uint64_t appended = 0; ///< columns behind the channels (mask, token id), to be checked against their values
    bool assumed = false;       ///< rows first by the convention of the names only
    bool decided() const { return !axes.empty(); }
};

/// Widths and side data of a file, gathered once for all of its arrays.
class FormContext {
public:
    explicit FormContext(const FileStructure &structure);
    ArrayForm formOf(const DatasetInfo &dataset) const;
    const DatasetInfo *find(std::string_view path) const;

private:
    ArrayForm rank2(const DatasetInfo &dataset, const PlaceInName &place) const;
    ArrayForm rank3(const DatasetInfo &dataset, const PlaceInName &place) const;
    ArrayForm rank4(const DatasetInfo &dataset, const PlaceInName &place) const;
    ArrayForm labelled(const DatasetInfo &dataset) const;
    /// A mask or ids of this shape in the group of the dataset or around it.
    const DatasetInfo *sideOf(const DatasetInfo &dataset, const std::vector<std::uint64_t> &shape) const;
    std::int64_t statedNumber(const DatasetInfo &dataset, std::initializer_list<std::string_view> keys) const;

    const FileStructure &m_structure;
    std::map<std::string_view, const DatasetInfo *> m_byPath;
    std::set<std::uint64_t> m_widths;
    std::size_t m_dotted = 0; ///< root names with dots and a layer
};

/// The two readings and the --layout line that settles them.
std::string undecidedText(const DatasetInfo &dataset, const ArrayForm &form);
std::string layoutLine(const DatasetInfo &dataset, const Axes &axes);

} // namespace planish
