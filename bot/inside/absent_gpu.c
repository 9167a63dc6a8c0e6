/* Stands for CUDA's runtime and driver where there is no GPU: preloaded under the name of the driver's library.

   One device of the architecture in TORCH_MINIFY_CUDA_ARCH, which is always done. It has what torch asks for without running anything:
   autograd asks for streams, attention for the architecture. Offsets in cudaDeviceProp are those of CUDA 12 and 13. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DONE(name) int name(void) { return 0; }

DONE(cudaSetDevice)
DONE(cudaGetLastError)
DONE(cudaPeekAtLastError)
DONE(cudaDeviceSynchronize)
DONE(cudaStreamSynchronize)
DONE(cudaStreamQuery)
DONE(cudaThreadExchangeStreamCaptureMode)

int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return 0; }
int cudaStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
int cudaDriverGetVersion(int *version) { *version = 99000; return 0; }

static int properties(char *all) {
    const char *text = getenv("TORCH_MINIFY_CUDA_ARCH");
    int arch = text ? atoi(text) : 0;
    memset(all, 0, 512);
    *(long long *)(all + 288) = 80LL << 30; /* totalGlobalMem */
    *(long long *)(all + 296) = 49152;      /* sharedMemPerBlock */
    *(int *)(all + 304) = 65536;            /* regsPerBlock */
    *(int *)(all + 308) = 32;               /* warpSize */
    *(int *)(all + 320) = 1024;             /* maxThreadsPerBlock */
    *(int *)(all + 360) = arch / 10;        /* major */
    *(int *)(all + 364) = arch % 10;        /* minor */
    return 0;
}

int cudaGetDeviceProperties(void *all, int device) { (void)device; return properties(all); }
int cudaGetDeviceProperties_v2(void *all, int device) { (void)device; return properties(all); }

/* no context, so nothing waits for one */
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { (void)device; *flags = 0; *active = 0; return 0; }

/* what torch's library for run-time compilation has to find to be loaded */
DONE(cuCtxGetCurrent)
DONE(cuCtxSetCurrent)
DONE(cuDeviceGet)
DONE(cuDeviceGetAttribute)
DONE(cuDevicePrimaryCtxRetain)
DONE(cuFuncGetAttribute)
DONE(cuFuncSetAttribute)
DONE(cuFuncSetCacheConfig)
DONE(cuGetErrorString)
DONE(cuLaunchCooperativeKernel)
DONE(cuLaunchKernel)
DONE(cuLinkAddData)
DONE(cuLinkAddData_v2)
DONE(cuLinkComplete)
DONE(cuLinkCreate)
DONE(cuLinkCreate_v2)
DONE(cuModuleGetFunction)
DONE(cuModuleLoad)
DONE(cuModuleLoadData)
DONE(cuModuleLoadDataEx)
DONE(cuModuleUnload)
DONE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
DONE(cuPointerGetAttribute)
DONE(cuTensorMapEncodeTiled)

/* A thread that wants the interpreter while that ends is ended by Python before 3.14, and C++ takes it for an exception that nobody catches.
   Autograd's threads for a device are such: they tidy up when backward() is back. So they wait until the process ends. */
void pthread_exit(void *value) {
    int (*ending)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!ending) ending = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    while (ending && ending()) pause();
    ((void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit"))(value);
    for (;;) pause();
}
