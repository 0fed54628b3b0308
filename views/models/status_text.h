// The traffic light of a candidate and the sentences beside its numbers.
#pragma once

#include <QString>

#include "core/evaluate/evaluation.h"

namespace planish {

struct EvaluationSlot;

/// Green: equivalent. Amber: the method changes the function by intent. Red: refused, failed, or the request itself failed. Grey:
/// no current result.
enum class Light { Grey, Green, Amber, Red };

Light lightOf(const Evaluation &evaluation);
Light lightOf(const EvaluationSlot *slot);
/// "equivalent, 3.1e-16 (gate 1e-12)", "refused: ...", "computing".
QString statusSentence(const Evaluation &evaluation);
QString statusSentence(const EvaluationSlot *slot);
/// "0.0123 within 0.0110 to 0.0136 (95 %, 8 blocks)"; wide ones in words.
QString uncertaintySentence(const Evaluation &evaluation);
/// "one row of 128 holds ..." on token-dominated edges, else empty.
QString dominationSentence(const Evaluation &evaluation);
/// "+ 3.1e+04 flops per token, 2 launches; weights 8.01 bits; folds into ..."
QString ledgerSentence(const Evaluation &evaluation);
/// "calibration 128, held-out 128, sealed 128 rows by request".
QString splitSentence(const RowCounts &rows, const QString &unit);

} // namespace planish
