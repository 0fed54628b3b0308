// The provenance line of what is on screen: file, edge, candidate, rows, backend, version.
#pragma once

#include <QString>

#include "views/charts/plot_export.h"
#include "views/models/session.h"

namespace planish {

enum class ProvenanceOf { Edge, Candidate };
QString provenanceText(Session *session, ProvenanceOf what);
inline Provenance provenanceFor(Session *session, ProvenanceOf what)
{
    return [session, what] { return provenanceText(session, what); };
}

} // namespace planish
