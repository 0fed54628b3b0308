// The axes a stored array may have, by the words people use for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/layouts/layout.h"

namespace planish {

enum class Axis { Layer, Request, Token, Head, HeadDim, Channel, Output };
using Axes = std::vector<Axis>;

/// "seq", "d_model", "tokens" …; nothing for a word that says nothing.
std::optional<Axis> axisByWord(std::string_view word);
std::optional<Axes> axesByWords(const std::vector<std::string> &words);
std::string_view wordOf(Axis axis);
/// "token, channel"
std::string axesText(const Axes &axes);

/// Row axes are requests and tokens, channel axes heads and channels; a layer axis stays at `layer`.
DataPiece pieceOf(const DatasetInfo &dataset, const Axes &axes, std::uint64_t layer = 0);

} // namespace planish
