// The verb `python`: writes the bridge to PyTorch into a folder. The files are resources; nothing is generated.
#pragma once

#include <string>
#include <vector>

#include "core/io/error.h"

namespace planish {

/// planish_torch.py, dump.py, what they import, and the family files, each written whole or not at all. Returns their paths.
Expected<std::vector<std::string>> writePythonBridge(const std::string &folder);

} // namespace planish
