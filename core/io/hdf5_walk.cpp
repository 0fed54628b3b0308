// The structure of an HDF5 file: groups breadth first, so an object gets its shortest path; every object once, by address.
#define H5_USE_110_API
#include <hdf5.h>

#include <deque>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/io/hdf5_attributes.h"
#include "core/io/hdf5_dataset.h"
#include "core/io/hdf5_file.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr int kDeepestGroup = 128;
constexpr int kLongestSoftChain = 64;
constexpr std::size_t kMostRefusals = 10000;
constexpr std::size_t kMostObjects = 1'000'000;

struct Link {
    std::string name;
    H5L_type_t type = H5L_TYPE_ERROR;
    haddr_t address = HADDR_UNDEF;
    std::size_t valueBytes = 0;
};

struct Group {
    std::string path;
    int depth = 0;
};

std::string joined(const std::string &group, const std::string &name)
{
    return group == "/" ? "/" + name : group + "/" + name;
}

std::string parentOf(const std::string &path)
{
    const std::size_t slash = path.find_last_of('/');
    return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

struct LinkList {
    std::vector<Link> links;
    ReaderMarks &marks;
};

herr_t collectLink(hid_t, const char *name, const H5L_info_t *info, void *data)
{
    LinkList &list = *static_cast<LinkList *>(data);
    const bool hard = info->type == H5L_TYPE_HARD;
    list.links.push_back({name, info->type, hard ? info->u.address : HADDR_UNDEF, hard ? 0 : info->u.val_size});
    list.marks.tick();
    return list.links.size() < kMostObjects ? 0 : 1;
}

class Walk {
public:
    Walk(const Hdf5File &file, ReaderMarks &marks)
        : m_file(file), m_marks(marks), m_access(linkAccess(file.trustedFolder())), m_datasetAccess(datasetAccess(file.trustedFolder()))
    {
        m_result.file = file.path();
        m_result.format = "hdf5";
    }

    FileStructure run()
    {
        H5O_info_t root;
        if (H5Oget_info(m_file.id(), &root) >= 0)
            m_seen.emplace(root.addr, "/");
        m_queue.push_back({"/", 0});
        while (!m_queue.empty()) {
            const Group group = std::move(m_queue.front());
            m_queue.pop_front();
            visit(group);
        }
        resolveLater();
        return std::move(m_result);
    }

private:
    void visit(const Group &group)
    {
        const Hdf5Handle handle(H5Oopen(m_file.id(), group.path.c_str(), m_access.get()), H5Oclose);
        if (!handle)
            return refuse(group.path, "cannot be opened (" + hdf5Reason() + ")");
        if (const std::string *reason = m_marks.enter(ReaderStep::Attributes, group.path))
            refuse(group.path, "its attributes " + *reason);
        else
            m_result.groups[group.path] = readAttributes(handle.get());
        listMembers(handle, group);
    }

    void listMembers(const Hdf5Handle &handle, const Group &group)
    {
        m_result.groups[group.path]; // a group without readable attributes is a group still
        if (const std::string *reason = m_marks.enter(ReaderStep::Members, group.path))
            return refuse(group.path, "its list of members " + *reason);
        LinkList list{{}, m_marks};
        hsize_t position = 0;
        if (H5Literate(handle.get(), H5_INDEX_NAME, H5_ITER_INC, &position, collectLink, &list) < 0)
            refuse(group.path, "not all of its members can be listed (" + hdf5Reason() + ")");
        for (const Link &link : list.links) {
            if (++m_objects > kMostObjects)
                return refuse(group.path, "members beyond the first " + std::to_string(kMostObjects) + " of the file: not read");
            follow(handle.get(), group, link);
        }
    }

    void follow(std::int64_t group, const Group &parent, const Link &link)
    {
        const std::string path = joined(parent.path, link.name);
        if (const std::string *reason = m_marks.enter(link.type == H5L_TYPE_HARD ? ReaderStep::Object : ReaderStep::Link, path))
            return refuse(path, *reason);
        if (link.type == H5L_TYPE_HARD)
            return hardLink(group, path, link, parent.depth + 1);
        // Soft and external links wait until every hard path is known, so that a real path names the object.
        if (link.type == H5L_TYPE_SOFT)
            m_softLinks.emplace_back(path, linkValue(group, link));
        else if (link.type == H5L_TYPE_EXTERNAL)
            externalLink(group, path, link);
        else
            refuse(path, "user-defined link of type " + std::to_string(link.type) + ": refused");
    }

    std::string linkValue(std::int64_t group, const Link &link) const
    {
        constexpr std::size_t kLongestValue = 65536;
        if (link.valueBytes == 0 || link.valueBytes > kLongestValue)
            return {};
        std::string value(link.valueBytes, '\0');
        if (H5Lget_val(group, link.name.c_str(), value.data(), value.size(), m_access.get()) < 0)
            return {};
        return value;
    }

    void hardLink(std::int64_t group, const std::string &path, const Link &link, int depth)
    {
        const auto [seen, isNew] = m_seen.emplace(link.address, path);
        if (!isNew) {
            if (m_datasets.count(link.address) > 0)
                m_result.aliases.emplace(path, seen->second);
            return;
        }
        const Hdf5Handle object(H5Oopen(group, link.name.c_str(), m_access.get()), H5Oclose);
        if (!object)
            return refuseUnreadable(path);
        addObject(object, path, link.address, depth);
    }

    void addObject(const Hdf5Handle &object, const std::string &path, haddr_t address, int depth)
    {
        switch (H5Iget_type(object.get())) {
        case H5I_GROUP:
            if (depth > kDeepestGroup)
                return refuse(path, "nested deeper than " + std::to_string(kDeepestGroup) + " groups: refused");
            m_queue.push_back({path, depth});
            return;
        case H5I_DATASET:
            return addDataset(object, path, address);
        default:
            return; // a named type
        }
    }

    void addDataset(const Hdf5Handle &object, const std::string &path, haddr_t address)
    {
        DescribedDataset described = describeDataset(object.get(), path, m_file.trustedFolder());
        m_result.notes.insert(m_result.notes.end(), described.notes.begin(), described.notes.end());
        if (!described.refused.empty())
            return refuse(path, described.refused);
        described.info.address = address;
        m_datasets.insert(address);
        m_result.datasets.push_back(std::move(described.info));
    }

    void refuseUnreadable(const std::string &path)
    {
        const std::string reason = hdf5Reason();
        if (reason.find("version") != std::string::npos || reason.find("unknown") != std::string::npos)
            return refuse(path, "written by a newer HDF5 than this program's " + hdf5Version() + " (" + reason +
                                    "); rewrite it with h5repack or libver='v110'");
        refuse(path, "cannot be opened (" + reason + ")");
    }

    void refuse(const std::string &path, const std::string &reason)
    {
        if (m_result.refused.size() < kMostRefusals)
            m_result.refused.push_back({path, reason});
    }

    void externalLink(std::int64_t group, const std::string &path, const Link &link)
    {
        const std::string value = linkValue(group, link);
        const char *file = nullptr;
        const char *inside = nullptr;
        unsigned flags = 0;
        if (value.empty() || H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &inside) < 0)
            return refuse(path, "external link without a readable target: refused");
        const std::string target = printable(file) + ":" + printable(inside);
        if (m_file.trustedFolder().empty())
            return refuse(path, "external link to " + target + ": refused (pass --trust-links)");
        if (!insideFolder(m_file.trustedFolder(), file))
            return refuse(path, "external link to " + target + ": refused (outside the folder of the file)");
        const Hdf5Handle object(H5Oopen(m_file.id(), path.c_str(), m_datasetAccess.get()), H5Oclose);
        if (!object)
            return refuse(path, "external link to " + target + " cannot be followed (" + hdf5Reason() + ")");
        if (H5Iget_type(object.get()) != H5I_DATASET)
            return refuse(path, "external link to " + target + " is no dataset: only datasets are taken from other files");
        addDataset(object, path, HADDR_UNDEF);
    }

    void resolveLater()
    {
        for (std::size_t i = 0; i < m_softLinks.size(); ++i)
            softLink(m_softLinks[i].first, m_softLinks[i].second);
    }

    /// Follows a soft link step by step ourselves: the library only says "too many links".
    void softLink(const std::string &path, const std::string &firstTarget)
    {
        if (const std::string *reason = m_marks.enter(ReaderStep::Link, path))
            return refuse(path, *reason);
        std::string target = absolute(parentOf(path), firstTarget);
        std::set<std::string> passed{path};
        for (int step = 0; step < kLongestSoftChain; ++step) {
            if (!passed.insert(target).second)
                return refuse(path, "soft link in a loop (back at " + target + ")");
            H5L_info_t info;
            if (target == "/" || !exists(target) || H5Lget_info(m_file.id(), target.c_str(), &info, m_access.get()) < 0) {
                if (target != "/")
                    refuse(path, "soft link to " + target + ", which does not exist");
                return;
            }
            if (info.type == H5L_TYPE_HARD)
                return alias(path, info.u.address);
            if (info.type == H5L_TYPE_EXTERNAL)
                return refuse(path, "soft link to the external link " + target + ": refused");
            const Link next{target, info.type, HADDR_UNDEF, info.u.val_size};
            target = absolute(parentOf(target), linkValue(m_file.id(), next));
        }
        refuse(path, "soft link through too many others (depth limit " + std::to_string(kLongestSoftChain) + ")");
    }

    static std::string absolute(const std::string &group, std::string target)
    {
        target.resize(std::char_traits<char>::length(target.c_str()));
        if (target.empty() || target[0] != '/')
            target = joined(group, target);
        while (target.size() > 1 && target.back() == '/')
            target.pop_back();
        return target;
    }

    /// Every component has to be there; HDF5 answers only for the last one.
    bool exists(const std::string &path) const
    {
        for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
            const std::string prefix = slash == std::string::npos ? path : path.substr(0, slash);
            if (H5Lexists(m_file.id(), prefix.c_str(), m_access.get()) <= 0)
                return false;
            if (slash == std::string::npos)
                return true;
        }
    }

    void alias(const std::string &path, haddr_t address)
    {
        const auto seen = m_seen.find(address);
        if (seen != m_seen.end() && m_datasets.count(address) > 0)
            m_result.aliases.emplace(path, seen->second);
    }

    const Hdf5File &m_file;
    ReaderMarks &m_marks;
    std::size_t m_objects = 0;
    Hdf5Handle m_access, m_datasetAccess;
    FileStructure m_result;
    std::deque<Group> m_queue;
    std::unordered_map<haddr_t, std::string> m_seen;
    std::set<haddr_t> m_datasets;
    std::vector<std::pair<std::string, std::string>> m_softLinks;
};

} // namespace

Expected<FileStructure> readStructure(const Hdf5File &file, ReaderMarks &marks)
{
    const Hdf5Lock lock;
    return Walk(file, marks).run();
}

} // namespace planish
