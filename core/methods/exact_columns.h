// The precision of the columns kept out of the quantizer (LLM.int8); which columns: core/transform/exceptions.
#pragma once

#include "core/methods/edge_product.h"

namespace planish {

/// Rounds the exact columns once to fp16 or bf16; the quantized elements stay as they are.
Expected<Quantized> roundExactColumns(const Backend &backend, Quantized quantized, const Resident &original,
                                      const ExceptionMask &mask, Precision precision, const std::string &subject);

} // namespace planish
