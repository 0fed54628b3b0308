#include "core/run/compare_state.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/io/atomic_file.h"
#include "core/io/file_key.h"
#include "core/run/envelope.h"
#include "core/run/evaluation_state.h"

namespace planish {

using Json = nlohmann::ordered_json;

namespace {

/// Everything of the options that decides a result.
Json requestKey(const EvaluateOptions &options, const std::string &backend)
{
    const RowRequest &rows = options.rows;
    return {{"version", PLANISH_VERSION},
            {"backend", backend},
            {"calibration", rows.calibration},
            {"split_seed", rows.splitSeed},
            {"budget", rows.budget},
            {"phase", static_cast<int>(rows.phase)},
            {"skip_positions", rows.skipPositions},
            {"skip_ids", rows.skipIds},
            {"fit", rows.fitRows},
            {"score", rows.scoreRows},
            {"partial", options.partial},
            {"preview", options.preview},
            {"tp", options.tensorParallel},
            {"target", options.target},
            {"ledger", {options.ledger.prefillTokens, options.ledger.batch, options.ledger.sramKib}}};
}

/// Identities of the dump and of every file of the checkpoint.
Expected<Json> fileKeys(const Opened &opened)
{
    std::vector<std::string> files = {opened.dump->info().file};
    if (std::filesystem::is_directory(opened.weightsPath)) {
        for (const std::string &shard : opened.weights->checkpoint()->info().files)
            files.push_back((std::filesystem::path(opened.weightsPath) / std::filesystem::path(shard).filename()).string());
    } else if (!opened.weightsPath.empty()) {
        files.push_back(opened.weightsPath);
    }
    Json keys = Json::array();
    for (const std::string &file : files) {
        auto key = fileIdentity(file);
        if (!key)
            return tl::make_unexpected(key.error());
        keys.push_back(*key);
    }
    return keys;
}

} // namespace

Expected<CompareState> CompareState::open(const std::string &folder, const Opened &opened, const EvaluateOptions &options,
                                          const std::string &backend)
{
    CompareState state;
    if (folder.empty())
        return state;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return dataError(folder, "cannot be made: " + error.message(), "a folder for --state");
    auto files = fileKeys(opened);
    if (!files)
        return tl::make_unexpected(files.error());
    Json request = requestKey(options, backend);
    request["files"] = std::move(*files);
    state.m_folder = folder;
    state.m_request = request.dump();
    return state;
}

std::string CompareState::pathOf(const EdgeId &edge, const Candidate &candidate) const
{
    Json key{{"request", m_request},
             {"edge", edge.value},
             {"name", candidate.name},
             {"seed", candidate.seed},
             {"act", canonicalText(candidate.act, Role::Activation)},
             {"weight", canonicalText(candidate.weight, Role::Weight)},
             {"kv", candidate.kv ? canonicalText(*candidate.kv, Role::Activation) : ""},
             {"selected_on", candidate.selectedOn}};
    for (const ChainMember &member : candidate.chain)
        key["chain"].push_back({member.method, member.set});
    return (std::filesystem::path(m_folder) / (sha256Hex(key.dump()) + ".json")).string();
}

std::optional<Evaluation> CompareState::load(const EdgeId &edge, const Candidate &candidate) const
{
    if (m_folder.empty())
        return std::nullopt;
    std::ifstream stream(pathOf(edge, candidate), std::ios::binary);
    if (!stream)
        return std::nullopt;
    const Json json = Json::parse(stream, nullptr, false);
    return json.is_discarded() ? std::nullopt : evaluationFromState(json, candidate);
}

Expected<void> CompareState::store(const EdgeId &edge, const Candidate &candidate, const Evaluation &evaluation) const
{
    if (m_folder.empty() || evaluation.rule == "not_built")
        return {};
    return writeFileAtomically(pathOf(edge, candidate), dumpJson(evaluationState(evaluation)));
}

} // namespace planish
