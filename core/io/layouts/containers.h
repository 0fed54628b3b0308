// Arrays inside the containers of other programs: MATLAB 7.3, netCDF-4 and xarray, AnnData, PyTables, pandas, hickle.
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseMatlab(const FileStructure &structure);
Expected<LayoutResult> readMatlab(const FileStructure &structure, BlockSource &source);

LayoutMatch recogniseNetcdf(const FileStructure &structure);
LayoutMatch recogniseXarray(const FileStructure &structure);
Expected<LayoutResult> readNetcdf(const FileStructure &structure, BlockSource &source);

LayoutMatch recogniseAnndata(const FileStructure &structure);
Expected<LayoutResult> readAnndata(const FileStructure &structure, BlockSource &source);

LayoutMatch recognisePytables(const FileStructure &structure);
LayoutMatch recognisePandas(const FileStructure &structure);
LayoutMatch recogniseHickle(const FileStructure &structure);
/// PyTables and hickle: the arrays by their own form, tables and bookkeeping left out.
Expected<LayoutResult> readTables(const FileStructure &structure, BlockSource &source);
Expected<LayoutResult> readPandas(const FileStructure &structure, BlockSource &source);

} // namespace planish
