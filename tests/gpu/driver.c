/* A driver for hosts without a GPU: the part of NVML, of the CUDA driver and of CUPTI that is
   used here, with kernels that run on the CPU.

   One library under three names. What it shows is in the folder STATE, a definition of the
   compiler: a line a GPU in `gpus` (uuid name major minor bytes), a line a MIG slice in `slices`
   (card number uuid), a line a fault in `faults` (function code, or function hang), a line a
   value in `values` (what number). A process that makes a context holds a lock on a file
   `on-<gpu>-…` there, by which the kernel says who it is in the reader's own namespace; the
   kernels that it launches are the file's length in bytes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, NOT_FOUND = 6, SMALL = 7, UNSUPPORTED = 3, SLICES = 7 };

struct gpu { char uuid[64], name[64]; int major, minor; unsigned long long bytes;
             int card, number; };
static struct gpu gpus[MOST]; /* the cards, then the slices */
static int slices_begin, slices_end;

static int host_gpus(void)
{
    FILE *file = fopen(STATE "/gpus", "r");
    int count = 0;
    while (file && count < MOST && fscanf(file, "%63s %63s %d %d %llu", gpus[count].uuid,
               gpus[count].name, &gpus[count].major, &gpus[count].minor, &gpus[count].bytes) == 5)
        count++;
    if (file)
        fclose(file);
    slices_begin = slices_end = count;
    file = fopen(STATE "/slices", "r");
    for (struct gpu one; file && slices_end < MOST
             && fscanf(file, "%d %d %63s", &one.card, &one.number, one.uuid) == 3; slices_end++) {
        struct gpu *slice = &gpus[slices_end];
        *slice = gpus[one.card];
        slice->card = one.card, slice->number = one.number, slice->bytes /= SLICES;
        strcpy(slice->uuid, one.uuid);
        strcpy(slice->name, "H200-MIG-1g.18gb");
    }
    if (file)
        fclose(file);
    return count;
}
static int is_cut(int card)
{
    for (int i = slices_begin; i < slices_end; i++)
        if (gpus[i].card == card)
            return 1;
    return 0;
}

/* A number that the host is told to show, or 0. */
static int value(const char *what)
{
    char name[80];
    int number, found = 0;
    FILE *file = fopen(STATE "/values", "r");
    while (file && fscanf(file, "%79s %d", name, &number) == 2)
        if (!strcmp(name, what))
            found = number;
    if (file)
        fclose(file);
    return found;
}

/* The fault that is asked of a function, or 0. */
static int fault(const char *function)
{
    char name[80], what[16];
    int code = 0;
    FILE *file = fopen(STATE "/faults", "r");
    while (file && fscanf(file, "%79s %15s", name, what) == 2)
        if (!strcmp(name, function)) {
            while (!strcmp(what, "hang"))
                pause();
            code = atoi(what);
        }
    if (file)
        fclose(file);
    return code;
}
#define MAY_FAIL() do { int code_ = fault(__func__); if (code_) return code_; } while (0)

/* NVML */

const char *nvmlErrorString(int code) { static char s[32]; sprintf(s, "code %d", code); return s; }
int nvmlInit_v2(void) { MAY_FAIL(); return 0; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; MAY_FAIL(); return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.1"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { MAY_FAIL(); *count = host_gpus(); return 0; }
static int handle_of(int place, void **handle)
{ *handle = (void *)(uintptr_t)(place + 1); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    if (value("lost") == (int)index + 1)
        return 15;
    return handle_of(index, handle);
}
static struct gpu *of(void *handle) { host_gpus(); return &gpus[(uintptr_t)handle - 1]; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    host_gpus();
    for (int i = 0; i < slices_end; i++)
        if (!strcmp(gpus[i].uuid, uuid))
            return handle_of(i, handle);
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(void *h, char *text, unsigned size)
{ snprintf(text, size, "%s", of(h)->uuid); return 0; }
int nvmlDeviceGetName(void *h, char *text, unsigned size)
{ snprintf(text, size, "%s", of(h)->name); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor)
{ *major = of(h)->major; *minor = of(h)->minor; return 0; }
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *h, struct memory *m)
{ m->total = m->free = of(h)->bytes; m->used = 0; return 0; }
int nvmlDeviceGetPersistenceMode(void *h, int *on) { (void)h; *on = 1; return 0; }
static int place_of(void *h) { host_gpus(); return (int)(uintptr_t)h - 1; }
int nvmlDeviceGetMigMode(void *h, int *now, int *then)
{
    int place = place_of(h);
    if (slices_begin == slices_end && !value("mig"))
        return UNSUPPORTED;
    *now = *then = is_cut(place) || value("mig");
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned *count) { (void)h; *count = SLICES; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned number, void **handle)
{
    int place = place_of(h);
    for (int i = slices_begin; i < slices_end; i++)
        if (gpus[i].card == place && gpus[i].number == (int)number)
            return handle_of(i, handle);
    return NOT_FOUND;
}
int nvmlDeviceGetComputeMode(void *h, int *mode) { (void)h; *mode = value("compute-mode"); return 0; }
int nvmlDeviceGetTotalEccErrors(void *h, int kind, int counter, unsigned long long *count)
{ (void)h; (void)kind; (void)counter; *count = value("memory-errors"); return 0; }
int nvmlDeviceGetRemappedRows(void *h, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed)
{ (void)h; *c = *u = 0; *pending = value("pending"); *failed = value("broken"); return 0; }
struct pci { char old[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *h, struct pci *p)
{ memset(p, 0, sizeof *p); sprintf(p->bus_id, "00000000:%02x:00.0", (int)(uintptr_t)h); return 0; }
struct process { unsigned pid; unsigned long long memory; unsigned gi, ci; };
struct use { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; };

/* Call `take` with each living process on a GPU and with its launches. */
static int each(void *h, void (*take)(int number, unsigned pid, long launches, void *more), void *more)
{
    int count = 0, number;
    DIR *folder = opendir(STATE);
    for (struct dirent *one; folder && (one = readdir(folder));) {
        struct stat facts;
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (sscanf(one->d_name, "on-%d-", &number) != 1 || number != (int)(uintptr_t)h - 1)
            continue;
        int file = openat(dirfd(folder), one->d_name, O_RDWR);
        if (file < 0)
            continue;
        if (!fstat(file, &facts) && !fcntl(file, F_GETLK, &lock) && lock.l_type != F_UNLCK) {
            if (take)
                take(count, lock.l_pid, facts.st_size, more);
            count++;
        }
        close(file);
    }
    if (folder)
        closedir(folder);
    return count;
}
static void one_process(int number, unsigned pid, long launches, void *more)
{
    (void)launches;
    struct process *all = more;
    all[number] = (struct process){pid, 512u << 20, 0, 0};
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *count, struct process *all)
{
    MAY_FAIL();
    int there = each(h, NULL, NULL);
    if (!there) { *count = 0; return 0; }
    if (!all || (int)*count < there) { *count = there; return SMALL; }
    *count = each(h, one_process, all);
    return 0;
}
static void one_use(int number, unsigned pid, long launches, void *more)
{
    struct use *all = more;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long at = now.tv_sec * 1000000ull + now.tv_nsec / 1000;
    all[number] = (struct use){pid, at, launches ? 80 : 0, 1, 0, 0};
}
int nvmlDeviceGetProcessUtilization(void *h, struct use *all, unsigned *count, unsigned long long since)
{
    (void)since;
    MAY_FAIL();
    if (place_of(h) >= slices_begin)
        return UNSUPPORTED; /* as of slices */
    int there = each(h, NULL, NULL);
    if (!there)
        return NOT_FOUND;
    if (!all || (int)*count < there) { *count = there; return SMALL; }
    *count = each(h, one_use, all);
    return 0;
}
int nvmlDeviceGetFieldValues(void *h, int count, void *values)
{ (void)h; (void)count; (void)values; return UNSUPPORTED; }
int nvmlDeviceGetP2PStatus(void *a, void *b, int index, int *status)
{ (void)a; (void)b; (void)index; *status = 0; return 0; }

/* CUPTI */

struct call { int site; const char *function; const void *given; void *status; const char *symbol;
              void *context; uint32_t context_id; uint64_t *more; uint32_t correlation; };
typedef void (*callback)(void *, int, uint32_t, const void *);
static callback subscribed;
int cuptiSubscribe(void **handle, callback call, void *unused)
{ (void)unused; MAY_FAIL(); subscribed = call; *handle = NULL; return 0; }
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{ (void)on; (void)handle; (void)domain; (void)id; return 0; }
int cuptiGetDeviceId(void *context, uint32_t *id) { *id = (uint32_t)(uintptr_t)context - 1; return 0; }

/* The CUDA driver. A device's number here is its place in CUDA_VISIBLE_DEVICES. */

static int shown[MOST], shown_count;
static __thread uintptr_t current;
static const char *kernel_name = "turn";

int cuGetErrorString(int code, const char **text)
{ static char s[32]; sprintf(s, "code %d", code); *text = s; return 0; }
int cuInit(unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    if (shown_count)
        return 0;
    int there = host_gpus();
    const char *names = getenv("CUDA_VISIBLE_DEVICES");
    for (int i = there; names && i < slices_end && !shown_count; i++)
        if (strstr(names, gpus[i].uuid))
            shown[shown_count++] = i; /* one slice, and no card beside it */
    for (int i = 0; i < there && !(shown_count && shown[0] >= there); i++) {
        char index[16];
        sprintf(index, "%d", i);
        if (is_cut(i))
            continue;
        if (!names || strstr(names, gpus[i].uuid) || (strlen(names) < 16 && strstr(names, index)))
            shown[shown_count++] = i;
    }
    if (!shown_count)
        return 100;
    const char *injected = getenv("CUDA_INJECTION64_PATH");
    void *library = injected ? dlopen(injected, RTLD_NOW) : NULL;
    int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (begin)
        begin();
    return 0;
}
int cuDeviceGetCount(int *count) { *count = shown_count; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    const char *at = gpus[shown[device]].uuid + 4;
    for (int i = 0; i < 16; i++, at += 2) {
        while (*at == '-')
            at++;
        sscanf(at, "%2hhx", &uuid[i]);
    }
    return 0;
}
static int held[MOST], holder; /* closing another descriptor of the file would free the lock */
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    char path[4096];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    MAY_FAIL();
    if (holder != getpid())
        memset(held, 0, sizeof held);
    holder = getpid();
    if (!held[device]) {
        sprintf(path, STATE "/on-%d-XXXXXX", shown[device]);
        held[device] = mkstemp(path);
        fcntl(held[device], F_SETLK, &lock);
    }
    *context = (void *)(uintptr_t)(device + 1);
    return 0;
}
int cuCtxSetCurrent(void *context) { current = (uintptr_t)context; return 0; }
int cuCtxSynchronize(void) { MAY_FAIL(); return 0; }
int cuCtxEnablePeerAccess(void *context, unsigned flags) { (void)context; (void)flags; return 0; }
int cuDeviceCanAccessPeer(int *can, int one, int other) { (void)one; (void)other; *can = 1; return 0; }
int cuModuleLoadData(void **module, const void *image) { (void)image; *module = module; return 0; }
int cuModuleGetFunction(const char **function, void *module, const char *name)
{ (void)module; (void)name; *function = kernel_name; return 0; }
int cuMemAlloc_v2(uint64_t *place, size_t size)
{ MAY_FAIL(); *place = (uint64_t)(uintptr_t)calloc(1, size); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{ memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{ memcpy(to, (void *)(uintptr_t)from, size); return 0; }
int cuMemcpyPeer(uint64_t to, void *there, uint64_t from, void *here, size_t size)
{ (void)there; (void)here; MAY_FAIL(); memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size); return 0; }
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, void *stream, void **given, void **extra)
{
    int status = fault("cuLaunchKernel");
    (void)gy; (void)gz; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    if (!status && given) {
        uint32_t *values = (uint32_t *)(uintptr_t)*(uint64_t *)given[0];
        uint32_t factor = *(uint32_t *)given[1], rounds = *(uint32_t *)given[2];
        if (rounds > 1000) { usleep(200); rounds = 1; }
        for (uint32_t i = 0; i < gx * bx; i++)
            for (uint32_t n = 0; n < rounds; n++)
                values[i] = values[i] * factor + i;
    }
    if (!status)
        (void)!write(held[current - 1], "x", 1);
    if (subscribed) {
        struct call call = {1, "cuLaunchKernel", NULL, &status, function, (void *)current, 1, NULL, 1};
        subscribed(NULL, 1, 307, &call);
    }
    return status;
}
/* Not of the driver: as if a library had been loaded whose kernels have this name. */
void name_kernels(const char *name) { kernel_name = strdup(name); }
