#include "views/models/plan_store.h"

#include <algorithm>

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"
#include "views/models/plan_text.h"

namespace planish {

PlanStore::PlanStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent)
    : QObject(parent), m_engine(std::move(engine)), m_lanes(lanes)
{
}

void PlanStore::reset(std::shared_ptr<const Opened> opened, const QString &file)
{
    m_opened = std::move(opened);
    m_dumpFile = file;
    m_file.clear();
    m_running.clear();
    m_pins.clear();
    m_plan.reset();
    m_verification.reset();
    m_stale = false;
    emit planChanged();
    setReport({});
}

void PlanStore::setPins(Pins pins)
{
    m_pins = std::move(pins);
    m_stale = m_plan != nullptr;
    emit planChanged();
}

void PlanStore::setReport(const QString &html)
{
    m_running.clear();
    m_report = html;
    emit reportChanged();
}

void PlanStore::begin(const QString &title)
{
    m_report.clear();
    m_running = title;
    emit reportChanged();
}

Expected<PlanOptions> PlanStore::optionsFor(const PlanSettings &settings, const Pins &pins,
                                            const std::vector<Candidate> &tryCandidates)
{
    PlanOptions options{
        .choose = settings.choose, .maxOnlineFlops = settings.maxOnlineFlops, .maxWeightBits = settings.maxWeightBits};
    options.allowOnline = settings.online == Permission::Allow;
    options.allowFunctionChange = settings.functionChange == Permission::Allow;
    options.acceptJoint = settings.joint == Permission::Allow;
    options.streams = settings.streams == Permission::Allow;
    options.exclude = settings.exclude;
    if (settings.preset.empty()) {
        options.candidates = tryCandidates;
    } else {
        auto preset = presetCandidates(settings.preset, settings.effort);
        if (!preset) {
            return tl::make_unexpected(preset.error());
        }
        options.candidates = std::move(*preset);
    }
    std::map<QString, std::string> names; // one candidate per distinct pin, limited to the edges that pin it
    for (const auto &[edge, candidate] : pins) {
        std::string &name = names[candidateKey(candidate)];
        if (name.empty()) {
            Candidate pinned = candidate;
            pinned.name = candidateLabel(candidate) == "none" ? "none" : "pinned: " + candidateLabel(candidate);
            const auto same = [&](const Candidate &other) { return other.name == pinned.name; };
            name = pinned.name;
            if (name != "none" && std::ranges::none_of(options.candidates, same)) {
                pinned.edges = {edge.value};
                options.candidates.push_back(std::move(pinned));
            }
        } else if (name != "none") {
            std::ranges::find_if(options.candidates, [&](const Candidate &c) {
                return c.name == name;
            })->edges.push_back(edge.value);
        }
        options.pins.emplace_back(edge.value, name);
    }
    return options;
}

void PlanStore::make(const PlanSettings &settings, const std::vector<Candidate> &tryCandidates)
{
    if (!m_opened) {
        return;
    }
    auto options = optionsFor(settings, m_pins, tryCandidates);
    if (!options) {
        setReport(errorHtml(options.error()));
        return;
    }
    begin(QStringLiteral("Making the plan"));
    m_lanes->submit<Plan>(
        LaneKind::Full, QStringLiteral("plan"), m_running,
        [engine = m_engine, opened = m_opened, options = std::move(*options)](std::stop_token stop, const ProgressSink &sink) {
            return engine->plan(*opened, options, stop, sink);
        },
        [this](const Expected<std::shared_ptr<const Plan>> &result) {
            if (!result) {
                setReport(errorHtml(result.error()));
                return;
            }
            m_plan = *result;
            m_file.clear();
            m_verification.reset();
            m_stale = false;
            emit planChanged();
            setReport(plannedHtml(*m_plan));
        });
}

void PlanStore::save(const QString &yamlFile)
{
    if (!m_plan) {
        return;
    }
    begin(QStringLiteral("Saving the manifest"));
    m_lanes->submit<std::vector<std::string>>(
        LaneKind::Io, QStringLiteral("save plan"), m_running,
        [plan = m_plan, file = yamlFile.toStdString()](std::stop_token, const ProgressSink &) { return writePlan(*plan, file); },
        [this, yamlFile](const Expected<std::shared_ptr<const std::vector<std::string>>> &result) {
            if (result) {
                m_file = yamlFile;
                emit planChanged();
            }
            setReport(result ? savedHtml(**result) : errorHtml(result.error()));
        });
}

void PlanStore::apply(const QString &checkpointIn, const QString &out)
{
    if (!m_plan || !m_opened || m_file.isEmpty()) {
        return;
    }
    begin(QStringLiteral("Applying the plan"));
    m_lanes->submit<ApplyResult>(
        LaneKind::Io, QStringLiteral("apply"), m_running,
        [plan = m_plan, opened = m_opened, file = m_file.toStdString(), in = checkpointIn.toStdString(),
         out = out.toStdString()](std::stop_token stop, const ProgressSink &sink) {
            return applyPlan(file, *plan, in, out, StoreAs::Stored, opened->families, stop, sink);
        },
        [this](const Expected<std::shared_ptr<const ApplyResult>> &result) {
            setReport(result ? appliedHtml(**result) : errorHtml(result.error()));
        });
}

void PlanStore::verify(const QString &checkpointIn, const QString &transformed)
{
    if (!m_plan || !m_opened || m_file.isEmpty()) {
        return;
    }
    begin(QStringLiteral("Verifying"));
    m_lanes->submit<VerifyResult>(
        LaneKind::Full, QStringLiteral("verify"), m_running,
        [plan = m_plan, opened = m_opened, backend = m_engine->backend(), file = m_file.toStdString(),
         dump = m_dumpFile.toStdString(), in = checkpointIn.toStdString(),
         out = transformed.toStdString()](std::stop_token stop, const ProgressSink &sink) {
            return verifyPlan(file, *plan, dump, in, out, opened->families, backend, stop, sink);
        },
        [this](const Expected<std::shared_ptr<const VerifyResult>> &result) {
            if (result) {
                m_verification = *result;
            }
            setReport(result ? verifiedHtml(**result) : errorHtml(result.error()));
        });
}

} // namespace planish
