// Builders of parameter rows, and the rows several methods share (parameters.md "Common parameters").
#pragma once

#include "core/methods/method.h"

namespace planish {

/// A real in [min, max]; `words` are values accepted beside numbers ("auto").
ParamRow realParam(std::string name, double min, double max, double step, std::string defaultValue, std::string help,
                   std::vector<std::string> words = {});
ParamRow integerParam(std::string name, std::int64_t min, std::int64_t max, std::string defaultValue, std::string help,
                      std::vector<std::string> words = {});
/// The first value is the default. A value that ends in `:PATH` accepts any text behind the colon.
ParamRow enumParam(std::string name, std::vector<std::string> values, std::string help, std::vector<std::string> aliases = {});
/// Comma separated; `none` is the empty list.
ParamRow listParam(std::string name, std::string defaultValue, std::string help);

ParamRow tiesParam();
ParamRow searchRowsParam();
ParamRow seedsParam();
/// `defaultValue` keep or absorb: quarot and spinquant absorb, the online rotations keep.
ParamRow gainParam(const std::string &defaultValue = "keep");

} // namespace planish
