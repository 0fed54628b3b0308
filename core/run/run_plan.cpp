#include "core/run/engine.h"

namespace planish {

Expected<Plan> Engine::plan(const Opened &opened, PlanOptions options, std::stop_token stop, const ProgressSink &progress) const
{
    options.evaluate.ledger = m_global.ledger;
    try {
        auto plan = makePlan(opened, options, m_backend, stop, progress);
        if (plan)
            plan->toolVersion = PLANISH_VERSION;
        return plan;
    } catch (const std::bad_alloc &) {
        return machineError("plan", "out of memory", "expected fewer rows (--rows) or a machine with more memory");
    }
}

} // namespace planish
