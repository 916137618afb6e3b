/* The driver's copies of a chunk between its buffer and the device: all of it, or its parts. */
#include "pipeline.h"

/* Copies some of a chunk, from its buffer or to it. */
static enum gpu_status send_some(CUstream stream, const struct pipeline_chunk *c,
                                 const struct pack_chunk *some)
{
    const struct staged_chunk *pack = &c->pack;
    const struct host_rectangle *r = pack->host;
    const bool up = !c->down;
    char *buffer = pack->packed + pack_part_offset(r, &pack->chunk, some, pack->ld);
    const CUdeviceptr there =
        c->copy->of.device.ptr + (CUdeviceptr)pack_offset(some, r, pack->device_ld);
    const size_t bytes = (size_t)pack_bytes(some, r, pack->device_ld);
    if (!r->trimmed)
        return up ? GPU_CHECK(cuMemcpyHtoDAsync, there, buffer, bytes, stream)
                  : GPU_CHECK(cuMemcpyDtoHAsync, buffer, there, bytes, stream);
    const size_t buffer_pitch = (size_t)(pack->ld * r->size),
                 device_pitch = (size_t)(pack->device_ld * r->size);
    const CUDA_MEMCPY2D plane = {
        .srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = up ? buffer : NULL,
        .srcDevice = up ? 0 : there,
        .srcPitch = up ? buffer_pitch : device_pitch,
        .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = up ? NULL : buffer,
        .dstDevice = up ? there : 0,
        .dstPitch = up ? device_pitch : buffer_pitch,
        .WidthInBytes = (size_t)(some->rows * r->size),
        .Height = (size_t)some->cols,
    };
    if (some->rows == 0) /* columns that the triangle does not have */
        return GPU_OK;
    return GPU_CHECK(cuMemcpy2DAsync, &plane, stream);
}

enum gpu_status send_chunk(CUstream stream, const struct pipeline_chunk *c)
{
    const struct tile_copy *of = &c->copy->of;
    if (!of->lent)
        return send_some(stream, c, &c->pack.chunk);
    return GPU_CHECK(cuMemcpyDtoDAsync, of->device.ptr, of->lent,
                     (size_t)pack_bytes(&c->pack.chunk, &of->host, of->device.ld), stream);
}

/* Adds the part behind `some` to it, if both are one copy: whole columns, or one column's. */
static bool join_part(struct pack_chunk *some, const struct pack_chunk *next, int64_t rows)
{
    if (next->cols == 0) /* there is no such part */
        return true;
    const bool whole = some->rows == rows && next->rows == rows;
    if (!whole && next->col != some->col)
        return false;
    some->cols += whole ? next->cols : 0;
    some->rows += whole ? 0 : next->rows;
    return true;
}

enum gpu_status send_parts(CUstream stream, struct pipeline_chunk *c, int64_t done)
{
    const struct staged_chunk *pack = &c->pack;
    while (c->early < done) {
        struct pack_chunk some = staged_chunk_part(pack, c->early++);
        while (some.cols > 0 && c->early < done) {
            const struct pack_chunk next = staged_chunk_part(pack, c->early);
            if (!join_part(&some, &next, pack->chunk.rows))
                break;
            c->early++;
        }
        if (some.cols > 0)
            GPU_TRY(send_some(stream, c, &some));
    }
    return GPU_OK;
}
