#include "core/run/engine.h"

#include "core/run/engine_state.h"
#include "kernels/backend_list.h"

namespace planish {

namespace {

tl::unexpected<Error> backendError(const std::string &key, const Status &status)
{
    const bool unknown = status.code == StatusCode::Unsupported;
    return tl::make_unexpected(Error{unknown ? ErrorCode::Usage : ErrorCode::Machine, "--backend " + key, status.message,
                                     "a backend of `planish-cli backends` that is usable here", {}});
}

std::vector<std::string> tensorNames(const DumpInfo &dump, const Checkpoint *checkpoint)
{
    std::vector<std::string> names;
    for (const TensorEntry &entry : dump.weights)
        names.push_back(entry.name.value);
    if (checkpoint) {
        for (const StoredTensor &tensor : checkpoint->info().tensors)
            names.push_back(tensor.name);
    }
    return names;
}

Expected<std::shared_ptr<const Family>> familyOf(const FamilyList &families, const GlobalOptions &global, const DumpInfo &dump,
                                                 const Checkpoint *checkpoint)
{
    if (!global.family.empty()) {
        auto family = families.find(global.family);
        if (!family) {
            std::string known;
            for (const auto &each : families.all())
                known += (known.empty() ? "" : ", ") + each->key;
            return usageError("--family " + global.family, "unknown family", "one of " + known);
        }
        return family;
    }
    std::vector<std::string> architectures = dump.model.architectures;
    if (checkpoint && checkpoint->info().config)
        architectures.insert(architectures.end(), checkpoint->info().config->architectures.begin(),
                             checkpoint->info().config->architectures.end());
    return families.match(dump.model.family, architectures, tensorNames(dump, checkpoint));
}

} // namespace

Engine::Engine(GlobalOptions global) : m_global(std::move(global)), m_state(std::make_shared<State>()) {}

Expected<std::shared_ptr<Engine>> Engine::create(const GlobalOptions &global)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return machineError("this CPU", "it has no AVX2 and FMA", "a processor of level x86-64-v3 or newer");
    auto engine = std::make_shared<Engine>(global);
    auto backend = makeBackend(global.backend, global.threads);
    if (!backend)
        return backendError(global.backend, backend.error());
    engine->m_backend = *backend;
    return engine;
}

Expected<std::shared_ptr<const Opened>> Engine::open(const OpenRequest &request, std::stop_token stop, const ProgressSink &progress) const
{
    if (progress)
        progress({.stage = "open", .done = 0, .total = 1, .unit = "file"});
    auto opened = std::make_shared<Opened>();
    auto families = FamilyList::load(resourceFolder(), request.global.familiesDir);
    if (!families)
        return tl::make_unexpected(families.error());
    opened->families = *families;
    auto dump = openDump(request.file, request.global.open, request.global.layout);
    if (!dump)
        return tl::make_unexpected(dump.error());
    opened->dump = *dump;
    if (stop.stop_requested())
        return cancelled(request.file);
    std::shared_ptr<const Checkpoint> checkpoint;
    if (!request.weights.empty()) {
        auto found = openCheckpoint(request.weights, request.global.config);
        if (!found)
            return tl::make_unexpected(found.error());
        checkpoint = *found;
    }
    auto family = familyOf(opened->families, request.global, opened->dump->info(), checkpoint.get());
    if (!family)
        return tl::make_unexpected(family.error());
    auto resolved = ResolvedWeights::resolve(opened->dump, checkpoint, *family, request.global.prefer);
    if (!resolved)
        return tl::make_unexpected(resolved.error());
    opened->weights = std::make_shared<ResolvedWeights>(std::move(*resolved));
    opened->weightsPath = request.weights;
    auto graph = buildGraph(opened->dump->info(), *opened->weights, opened->families);
    if (!graph)
        return tl::make_unexpected(graph.error());
    opened->graph = std::move(*graph);
    if (progress)
        progress({.stage = "open", .done = 1, .total = 1, .unit = "file"});
    return opened;
}

} // namespace planish
