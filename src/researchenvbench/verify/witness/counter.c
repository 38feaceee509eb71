/* Counts the kernels that a process launches, by GPU; those of NCCL on their own.

   The CUDA driver loads this library into each process that initialises it, where
   CUDA_INJECTION64_PATH names it, and calls InitializeInjection. The counts lie in a file that
   is mapped into memory, REB_COUNTS/<pid>.counts, so that they stay when the process is killed.
   `counts.py` reads them; both must agree on `struct counts`.

   CUPTI is opened at run time: the process must use the one of its own CUDA's major version,
   and a process that has none is not counted, which the file says.

   cc -shared -fPIC -O2 -I<headers of CUPTI and CUDA> counter.c -o counter.so -ldl -lpthread
*/
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEVICES = 64, WORDS = 240 };
enum state { STARTING = 0, COUNTING = 1, NOT_COUNTING = 2 };

struct device {
    uint8_t uuid[16];
    uint64_t known; /* whether `uuid` is set */
    uint64_t kernels; /* launched, those of NCCL among them */
    uint64_t nccl;
    uint64_t graphs; /* launched; each holds any number of kernels */
};

struct counts {
    char magic[8];
    uint32_t pid; /* as the process knows itself */
    uint32_t state;
    char words[WORDS]; /* why it does not count, or which CUPTI it uses */
    struct device devices[DEVICES];
};

static struct counts *counts;
static CUptiResult (*device_of)(CUcontext, uint32_t *);
static CUresult (*device_get)(CUdevice *, int);
static CUresult (*device_uuid)(CUuuid *, CUdevice);
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

static const CUpti_CallbackId launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};

static int stop(const char *why, const char *more)
{
    snprintf(counts->words, WORDS, "%s%.150s", why, more ? more : "");
    __atomic_store_n(&counts->state, NOT_COUNTING, __ATOMIC_RELEASE);
    return 1; /* the process goes on as if nothing had been asked */
}

/* Set a device's UUID the first time that it is used. */
static void name_device(struct device *device, uint32_t number)
{
    CUdevice handle;
    CUuuid uuid;
    pthread_mutex_lock(&naming);
    if (!device->known && device_get(&handle, (int)number) == CUDA_SUCCESS
        && device_uuid(&uuid, handle) == CUDA_SUCCESS) {
        memcpy(device->uuid, uuid.bytes, sizeof device->uuid);
        __atomic_store_n(&device->known, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&naming);
}

static void CUPTIAPI launched(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void *given)
{
    const CUpti_CallbackData *call = given;
    uint32_t number;
    (void)unused;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_EXIT)
        return;
    if (call->functionReturnValue && *(const CUresult *)call->functionReturnValue != CUDA_SUCCESS)
        return;
    if (!call->context || device_of(call->context, &number) != CUPTI_SUCCESS || number >= DEVICES)
        return;
    struct device *device = &counts->devices[number];
    if (!__atomic_load_n(&device->known, __ATOMIC_ACQUIRE))
        name_device(device, number);
    if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch
        || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
        __atomic_fetch_add(&device->graphs, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&device->kernels, 1, __ATOMIC_RELAXED);
    if (call->symbolName && strstr(call->symbolName, "nccl") && strstr(call->symbolName, "Kernel"))
        __atomic_fetch_add(&device->nccl, 1, __ATOMIC_RELAXED);
}

/* The major version of the CUDA libraries that are mapped, or 0. */
static int find_major(struct dl_phdr_info *info, size_t size, void *found)
{
    static const char *const names[] = {"libcudart.so.", "libcublas.so.", "libcublasLt.so."};
    (void)size;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(info->dlpi_name ? info->dlpi_name : "", names[i]);
        if (at && atoi(at + strlen(names[i])) > 0) {
            *(int *)found = atoi(at + strlen(names[i]));
            return 1;
        }
    }
    return 0;
}

/* CUPTI of the process's own CUDA: one that is mapped, or that REB_CUPTI gives for its version.

   REB_CUPTI is a list such as 12=/a/libcupti.so.12:13=/b/libcupti.so.13. Where no library of
   CUDA is mapped (a program of the driver's interface alone), the first of the list is taken. */
static void *open_cupti(const char **used)
{
    static char name[4096];
    int major = 0;
    for (int version = 30; version >= 10; version--) {
        snprintf(name, sizeof name, "libcupti.so.%d", version);
        void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            *used = name;
            return library;
        }
    }
    dl_iterate_phdr(find_major, &major);
    for (const char *at = getenv("REB_CUPTI"); at && *at;) {
        const char *path = strchr(at, '=');
        size_t length = strcspn(at, ":");
        if (path && path < at + length && (!major || atoi(at) == major)) {
            snprintf(name, sizeof name, "%.*s", (int)(at + length - path - 1), path + 1);
            void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
            if (library) {
                *used = name;
                return library;
            }
        }
        at += length + (at[length] == ':');
    }
    return NULL;
}

static int map_counts(void)
{
    char path[4096];
    const char *folder = getenv("REB_COUNTS");
    if (!folder)
        return 0;
    snprintf(path, sizeof path, "%s/%ld.counts", folder, (long)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        return 0;
    void *memory = MAP_FAILED;
    if (ftruncate(file, sizeof *counts) == 0)
        memory = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return 0;
    counts = memory;
    memcpy(counts->magic, "REBCNT1", 8);
    counts->pid = (uint32_t)getpid();
    return 1;
}

int InitializeInjection(void)
{
    const char *used = "";
    CUpti_SubscriberHandle subscriber;
    if (counts || !map_counts())
        return 1;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver)
        return stop("no libcuda.so.1 is mapped", NULL);
    device_get = (CUresult(*)(CUdevice *, int))dlsym(driver, "cuDeviceGet");
    device_uuid = (CUresult(*)(CUuuid *, CUdevice))dlsym(driver, "cuDeviceGetUuid_v2");
    if (!device_uuid)
        device_uuid = (CUresult(*)(CUuuid *, CUdevice))dlsym(driver, "cuDeviceGetUuid");
    void *cupti = open_cupti(&used);
    if (!cupti)
        return stop("no libcupti of the CUDA that the process uses was found", NULL);
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *) =
        (CUptiResult(*)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *))dlsym(
            cupti, "cuptiSubscribe");
    CUptiResult (*enable)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                          CUpti_CallbackId) =
        (CUptiResult(*)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                        CUpti_CallbackId))dlsym(cupti, "cuptiEnableCallback");
    device_of = (CUptiResult(*)(CUcontext, uint32_t *))dlsym(cupti, "cuptiGetDeviceId");
    if (!device_get || !device_uuid || !subscribe || !enable || !device_of)
        return stop("a function is missing in libcuda, or in ", used);
    if (subscribe(&subscriber, launched, NULL) != CUPTI_SUCCESS)
        return stop("somebody else in the process has subscribed to ", used);
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        if (enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]) != CUPTI_SUCCESS
            && i < 2)
            return stop("launches cannot be followed with ", used);
    snprintf(counts->words, WORDS, "%.239s", used);
    __atomic_store_n(&counts->state, COUNTING, __ATOMIC_RELEASE);
    return 1;
}
