#include "core/graph/edge.h"

namespace planish {

namespace {

template <class... Cases> struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

} // namespace

std::string nameOf(const Producer &producer)
{
    return std::visit(Overloaded{[](const UnknownProducer &p) { return p.name; },
                                 [](const NormProducer &p) { return p.name.value; },
                                 [](const LinearProducer &p) { return p.name.value.empty() ? p.tensor.value : p.name.value; },
                                 [](const ElementwiseProducer &p) { return p.up.value; },
                                 [](const StreamProducer &p) { return p.stream.value; }},
                      producer);
}

std::string kindOf(const Producer &producer)
{
    return std::visit(Overloaded{[](const UnknownProducer &) { return std::string("unknown"); },
                                 [](const NormProducer &p) { return p.kind; },
                                 [](const LinearProducer &) { return std::string("linear"); },
                                 [](const ElementwiseProducer &) { return std::string("elementwise"); },
                                 [](const StreamProducer &) { return std::string("stream"); }},
                      producer);
}

} // namespace planish
