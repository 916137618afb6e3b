/* A plug-in whose constructor calls its host. */
void at_load(void);

__attribute__((constructor)) static void load(void)
{
    at_load();
}
