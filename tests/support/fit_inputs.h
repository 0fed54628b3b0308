// A FitInput from plain matrices: what the evaluator builds from a dump, for tests of methods.
#pragma once

#include <memory>
#include <numeric>
#include <stdexcept>

#include "core/methods/method_table.h"
#include "kernels/backend_list.h"

namespace planish::test {

/// Owns what a FitInput points to.
struct Fit {
    Edge edge;
    ModelInfo model;
    FitInput input;
};

template <Part P> RowView<P> viewOf(const MatrixD &x)
{
    std::vector<std::int64_t> rows(x.rows());
    std::iota(rows.begin(), rows.end(), 0);
    const std::vector<std::int32_t> zeros(x.rows());
    return RowView<P>(rows, zeros, zeros, std::make_shared<const MatrixD>(x), static_cast<std::int64_t>(x.rows()));
}

inline QuantSpec specOf(const std::string &text, Role role)
{
    auto spec = parseQuantSpec(text, role);
    if (!spec)
        throw std::runtime_error(toText(spec.error()));
    return *spec;
}

/// All rows are calibration; the last quarter is the inner validation part. Weights become consumers 0.w, 1.w, …
inline std::unique_ptr<Fit> fitOf(const MatrixD &x, const std::vector<MatrixD> &weights, const std::string &act,
                                  const std::string &weight)
{
    auto fit = std::make_unique<Fit>();
    fit->edge.id = {"layers.0.mlp_in"};
    fit->edge.channels = x.cols();
    FitInput &input = fit->input;
    input.edge = &fit->edge;
    input.model = &fit->model;
    const std::size_t inner = x.rows() - (x.rows() + 3) / 4;
    MatrixD first(inner, x.cols()), last(x.rows() - inner, x.cols());
    for (std::size_t m = 0; m < x.rows(); ++m)
        std::copy(x.row(m).begin(), x.row(m).end(), m < inner ? first.row(m).begin() : last.row(m - inner).begin());
    input.calibration = viewOf<Part::Calibration>(x);
    input.fitting = viewOf<Part::Calibration>(first);
    input.validation = viewOf<Part::Validation>(last);
    input.statistics = std::make_shared<const Statistics>(statisticsOf(x.view()));
    for (std::size_t i = 0; i < weights.size(); ++i) {
        Consumer consumer;
        consumer.tensor = {std::to_string(i) + ".w"};
        fit->edge.consumers.push_back(consumer);
        input.consumers.push_back({consumer, std::make_shared<const MatrixD>(weights[i]), nullptr});
    }
    input.specs = {specOf(act, Role::Activation), specOf(weight, Role::Weight), std::nullopt};
    input.streamId = fit->edge.id.value;
    input.backend = *makeBackend("reference");
    return fit;
}

/// The Rewrite of `METHOD` with NAME=VALUE settings.
inline Expected<Rewrite> fitMethod(Fit &fit, const std::string &method, const std::vector<std::string> &sets = {})
{
    auto chain = parseChain(method, sets);
    if (!chain)
        return tl::make_unexpected(chain.error());
    const MethodRow &row = *findMethod(chain->front().method);
    fit.input.params = *resolveParams(row, chain->front());
    return row.fit(fit.input);
}

} // namespace planish::test
