// Candidates from text for tests of the evaluator.
#pragma once

#include <stdexcept>

#include "core/methods/method_table.h"

namespace planish::test {

inline Candidate candidateOf(const std::string &method, const std::string &act, const std::string &weight,
                             const std::vector<std::string> &sets = {})
{
    auto chain = parseChain(method, sets);
    auto a = parseQuantSpec(act, Role::Activation), w = parseQuantSpec(weight, Role::Weight);
    if (!chain || !a || !w)
        throw std::runtime_error(toText(!chain ? chain.error() : !a ? a.error() : w.error()));
    return {.name = method, .chain = *chain, .act = *a, .weight = *w};
}

} // namespace planish::test
