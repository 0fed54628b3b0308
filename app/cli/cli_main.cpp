// placeholder until the verbs arrive
int main() { return 2; }
