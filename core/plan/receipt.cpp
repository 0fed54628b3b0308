#include "core/plan/receipt.h"

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/io/atomic_file.h"

namespace planish {

namespace fs = std::filesystem;

namespace {

constexpr const char *kReceiptEnd = ".planish.json";
constexpr std::uintmax_t kMaxReceipt = 16u << 20;

std::optional<nlohmann::ordered_json> readJson(const fs::path &file)
{
    std::error_code code;
    if (fs::file_size(file, code) > kMaxReceipt || code)
        return std::nullopt;
    std::ifstream in(file, std::ios::binary);
    auto json = nlohmann::ordered_json::parse(in, nullptr, false);
    if (json.is_discarded())
        return std::nullopt;
    return json;
}

} // namespace

std::string folderOf(const std::string &path)
{
    const fs::path parent = fs::path(path).parent_path();
    return parent.empty() ? std::string(".") : parent.string();
}

std::string receiptName(const std::string &out)
{
    std::string name = out;
    while (name.size() > 1 && name.back() == '/')
        name.pop_back();
    return name + kReceiptEnd;
}

Expected<void> writeReceipt(const std::string &planFile, const std::string &planSha256, const ApplyResult &result,
                            const std::vector<std::string> &rewritten)
{
    const nlohmann::ordered_json receipt = {{"schema", "planish.receipt/1"},
                                            {"time", utcNow()},
                                            {"out", fs::path(result.out).filename().string()},
                                            {"plan", fs::path(planFile).filename().string()},
                                            {"plan_sha256", planSha256},
                                            {"basis_in", result.basisIn},
                                            {"basis_out", result.basisOut},
                                            {"tensors_rewritten", rewritten}};
    return writeFileAtomically(receiptName(result.out), receipt.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::string> knownOutputs(const std::vector<std::string> &folders)
{
    std::vector<std::string> hashes;
    for (const std::string &folder : folders) {
        std::error_code code;
        for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, code), end; !code && it != end; it.increment(code)) {
            std::error_code ignored;
            if (!it->path().string().ends_with(kReceiptEnd) || !it->is_regular_file(ignored))
                continue;
            const auto receipt = readJson(it->path());
            if (receipt && receipt->is_object() && receipt->contains("basis_out") && (*receipt)["basis_out"].is_string())
                hashes.push_back((*receipt)["basis_out"].get<std::string>());
        }
    }
    return hashes;
}

std::string verifyLogName(const std::string &planFile)
{
    return fs::path(planFile).replace_extension(".verify.json").string();
}

Expected<int> appendVerifyRun(const std::string &planFile, const nlohmann::ordered_json &run, bool sealedRows)
{
    const std::string file = verifyLogName(planFile);
    nlohmann::ordered_json log = {{"schema", "planish.verify-log/1"}, {"opened", 0}, {"runs", nlohmann::ordered_json::array()}};
    std::error_code code;
    if (fs::exists(file, code)) {
        auto read = readJson(file);
        if (!read || !read->is_object() || !(*read)["opened"].is_number_integer() || !(*read)["runs"].is_array())
            return dataError(file, "is no log of verify runs", "expected the file verify wrote; move it away to count again");
        log = std::move(*read);
    }
    const int opened = log["opened"].get<int>() + (sealedRows ? 1 : 0);
    log["opened"] = opened;
    log["runs"].push_back(run);
    if (auto written = writeFileAtomically(file, log.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); !written)
        return tl::make_unexpected(written.error());
    return opened;
}

std::string utcNow()
{
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

} // namespace planish
