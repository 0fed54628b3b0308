// The tour: opens a file, visits every screen, saves a picture of each and writes the numbers shown to tour.txt. Needs no display.
#pragma once

#include <QString>

#include "core/io/error.h"
#include "core/run/engine.h"

namespace planish {

/// `file` empty: the sample. Errors: the file does not open, a screen cannot be saved, a computation does not end in time.
Expected<void> runTour(const std::shared_ptr<Engine> &engine, const QString &folder, const QString &file, const QString &weights);

} // namespace planish
