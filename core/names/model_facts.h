// /model of a dump completed by config.json. They must agree where both speak: a difference is an error naming the field.
// names.md.
#pragma once

#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

/// `dumpFile` and `configFile` only name the two sides in the error.
Expected<ModelInfo> completeModel(const ModelInfo &dump, const ModelInfo &config, const std::string &dumpFile,
                                  const std::string &configFile);

} // namespace planish
