#include "core/run/report_proof.h"

#include "core/evaluate/edge_data.h"
#include "core/run/run_edges.h"

namespace planish {

namespace {

Expected<void> addGeometry(ReportProof &proof, const EdgeData &data, const Assignment &assignment, std::stop_token stop)
{
    auto before = data.statistics(stop);
    if (!before)
        return tl::make_unexpected(before.error());
    proof.profileBefore = (*before)->channel.maxAbs;
    proof.curveBefore = concentrationCurve(**before);
    proof.maxToMedianBefore = (*before)->maxToMedian();
    proof.incoherenceBefore = (*before)->meanIncoherence();
    if (!assignment.rewrite || assignment.rewrite->input.isIdentity())
        return {};
    auto after = data.statisticsBehind(assignment.rewrite->input, stop);
    if (!after)
        return tl::make_unexpected(after.error());
    proof.profileAfter = (*after)->channel.maxAbs;
    proof.curveAfter = concentrationCurve(**after);
    proof.incoherenceAfter = (*after)->meanIncoherence();
    return {};
}

Expected<void> measure(ReportProof &proof, const Engine &engine, const Opened &opened, const Assignment &assignment,
                       const EvaluateOptions &options, std::stop_token stop)
{
    auto data = engine.edgeData(opened, assignment.edge, options, stop);
    if (!data)
        return tl::make_unexpected(data.error());
    if (auto geometry = addGeometry(proof, **data, assignment, stop); !geometry)
        return geometry;
    const Rewrite identity;
    auto evaluation =
        evaluateRewrite(opened, **data, assignment.candidate, assignment.rewrite ? *assignment.rewrite : identity, options, stop);
    if (!evaluation)
        return tl::make_unexpected(evaluation.error());
    if (evaluation->status != EvaluationStatus::Ok)
        proof.note = "measured again: " + evaluation->reason;
    proof.evaluation = std::move(*evaluation);
    return {};
}

} // namespace

Expected<ReportProof> proveEdge(const Engine &engine, const Opened &opened, const Assignment &assignment,
                                const EvaluateOptions &options, std::stop_token stop)
{
    ReportProof proof{.edge = assignment.edge};
    if (!opened.graph.find(assignment.edge)) {
        proof.note = "not in this dump: its numbers are those of the plan";
        return proof;
    }
    if (auto measured = measure(proof, engine, opened, assignment, options, stop); !measured) {
        const Error &error = measured.error();
        if (error.code == ErrorCode::Cancelled || error.code == ErrorCode::Machine)
            return tl::make_unexpected(error);
        proof.note = "not measured again: " + toText(error);
    }
    return proof;
}

} // namespace planish
