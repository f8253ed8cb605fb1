/* A library with the names, numbers and structures of NVIDIA's public header nvml.h, for machines without a GPU. It
   plays three GPUs: two that are linked by two NVLinks each, and on an NVSwitch besides, and one that is cut into
   slices. What it plays is read from the file CONTROL ("name number" in each line) whenever GPUs are counted. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
struct nvmlDevice_st { int index, slice; };
struct nvmlEventSet_st { int registered; };

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned long long bar1Total, bar1Free, bar1Used; } nvmlBAR1Memory_t;
typedef struct {
	unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
		sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
	unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
typedef struct { unsigned int version; int marginTemperature; } nvmlMarginTemperature_v1_t;

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, LOST = 15, MISMATCH = 25 };

static struct nvmlDevice_st gpus[3] = {{0, -1}, {1, -1}, {2, -1}}, slices[2] = {{2, 0}, {2, 3}};
static struct nvmlEventSet_st events;
static int lost, ecc, xid, temperature, hang, crash, init, count;

static void control(void) {
	lost = ecc = xid = hang = crash = init = 0;
	temperature = 41;
	count = 3;
	FILE *f = fopen(CONTROL, "r");
	char name[32];
	int n;
	while (f && fscanf(f, "%31s %d", name, &n) == 2) {
		if (!strcmp(name, "lost")) lost = n;
		if (!strcmp(name, "ecc")) ecc = n;
		if (!strcmp(name, "xid")) xid = n;
		if (!strcmp(name, "temperature")) temperature = n;
		if (!strcmp(name, "hang")) hang = n;
		if (!strcmp(name, "crash")) crash = n;
		if (!strcmp(name, "init")) init = n;
		if (!strcmp(name, "count")) count = n;
	}
	if (f) fclose(f);
}

static nvmlReturn_t put(char *to, unsigned int size, const char *text) {
	if (strlen(text) >= size) return 7;
	strcpy(to, text);
	return OK;
}

nvmlReturn_t nvmlInit_v2(void) { control(); return init; }
nvmlReturn_t nvmlShutdown(void) { return OK; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned int size) { return put(v, size, "550.54.15"); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 12040; return OK; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) {
	control();
	if (crash) *(volatile int *)0 = 1;
	*n = count;
	return OK;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) {
	if (i >= 3) return INVALID;
	*d = &gpus[i];
	return OK;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *v, unsigned int size) {
	char id[64];
	sprintf(id, d->slice < 0 ? "GPU-fake-%d" : "MIG-fake-%d-%d", d->index, d->slice);
	return put(v, size, id);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *v, unsigned int size) {
	if (d->slice == 0) return put(v, size, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	if (d->slice == 3) return UNSUPPORTED;
	return put(v, size, "NVIDIA H100 80GB HBM3");
}
static void address(nvmlPciInfo_t *p, unsigned int domain, unsigned int bus) {
	memset(p, 0xee, sizeof *p);
	p->domain = domain, p->bus = bus, p->device = 0;
	sprintf(p->busIdLegacy, "%04X:%02X:00.0", domain, bus);
	sprintf(p->busId, "%08X:%02X:00.0", domain, bus);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) { address(p, d->index == 2 ? 0x10000 : 0, 0x1b + d->index); return OK; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) { m->total = 81559ULL << 20; m->free = 1; m->used = 2; return OK; }
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *m) { m->bar1Total = 131072ULL << 20; m->bar1Free = 3; m->bar1Used = 4; return OK; }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *mw) { *mw = 700000; return OK; }
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, int kind, unsigned int *mhz) {
	if (kind != 0 && kind != 2) return INVALID;
	*mhz = kind == 0 ? 1980 : 2619;
	return OK;
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned int *n) { *n = 5; return OK; }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned int *n) { *n = 16; return OK; }
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t d, int *on) { *on = 0; return OK; }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, int *on) { *on = 1; return OK; }
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) { *major = 9; *minor = 0; return OK; }
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *now, unsigned int *next) { *now = *next = d->index == 2; return OK; }
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int i, nvmlDevice_t *slice) {
	if (d->index != 2 || (i != 0 && i != 3)) return NOT_FOUND;
	*slice = &slices[i / 3];
	return OK;
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t d, nvmlDeviceAttributes_t *a) {
	memset(a, 0x77, sizeof *a);
	a->gpuInstanceSliceCount = d->slice == 0 ? 1 : 3;
	a->computeInstanceSliceCount = 1;
	a->memorySizeMB = d->slice == 0 ? 9856 : 40192;
	return OK;
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, int *up) {
	if (d->index == 2 || link > 3) return link >= 18 ? INVALID : UNSUPPORTED;
	*up = link != 1;
	return OK;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *p) {
	address(p, 0, link == 3 ? 0x07 : 0x1b + 1 - d->index);
	return OK;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int link, int *kind) { *kind = link == 3 ? 2 : 0; return OK; }
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int kind, int counter, unsigned long long *n) {
	if (kind != 1 || counter != 0) return INVALID;
	*n = d->index == 1 ? ecc : 0;
	return OK;
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *c, unsigned int *u, unsigned int *p, unsigned int *f) { *c = *u = *p = 1; *f = 0; return OK; }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, unsigned int *t) {
	while (hang) pause();
	if (d->index == 1 && lost) return LOST;
	*t = temperature;
	return sensor == 0 ? OK : INVALID;
}
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, int which, unsigned int *t) { *t = 87; return which == 1 ? OK : INVALID; }
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_v1_t *m) {
	if (m->version != (sizeof *m | 1 << 24)) return MISMATCH;
	m->marginTemperature = 87 - temperature;
	return OK;
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *s) { *s = &events; return OK; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long kinds, nvmlEventSet_t s) {
	if (d->index == 2 || s != &events) return UNSUPPORTED;
	s->registered |= kinds == 8;
	return OK;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *e, unsigned int ms) {
	if (!s->registered || !xid) return TIMEOUT;
	memset(e, 0xee, sizeof *e);
	e->device = &gpus[1];
	e->eventType = 8;
	e->eventData = xid;
	xid = 0;
	return OK;
}
