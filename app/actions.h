// Menus and shortcuts of the window. Each action calls one function of the window or the session.
#pragma once

namespace planish {

class MainWindow;
void buildMenus(MainWindow *window);

} // namespace planish
