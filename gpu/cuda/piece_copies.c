/* The driver's copies of a piece between its slot and the device: of all of it, or of its parts. */
#include "check.h"
#include "lane.h"

enum gpu_status lane_copy_piece(CUstream stream, bool up, const struct lane_rectangle *r,
                                const struct pack_piece *piece, char *slot, CUdeviceptr device,
                                int64_t device_ld)
{
    const CUdeviceptr there = device + (CUdeviceptr)pack_offset(piece, r, device_ld);
    const size_t bytes = (size_t)pack_bytes(piece, r, device_ld);
    if (!r->trimmed)
        return up ? GPU_CHECK(cuMemcpyHtoDAsync, there, slot, bytes, stream)
                  : GPU_CHECK(cuMemcpyDtoHAsync, slot, there, bytes, stream);
    const size_t slot_pitch = (size_t)(pack_slot_ld(r, piece, device_ld) * r->size),
                 device_pitch = (size_t)(device_ld * r->size);
    const CUDA_MEMCPY2D plane = {
        .srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = up ? slot : NULL,
        .srcDevice = up ? 0 : there,
        .srcPitch = up ? slot_pitch : device_pitch,
        .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = up ? NULL : slot,
        .dstDevice = up ? there : 0,
        .dstPitch = up ? device_pitch : slot_pitch,
        .WidthInBytes = (size_t)(piece->rows * r->size),
        .Height = (size_t)piece->cols,
    };
    if (piece->rows == 0) /* columns that the triangle does not have */
        return GPU_OK;
    return GPU_CHECK(cuMemcpy2DAsync, &plane, stream);
}

/* Adds the part behind `some` to it, if both are one copy: whole columns, or one column's. */
static bool join_part(struct pack_piece *some, const struct pack_piece *next, int64_t rows)
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

enum gpu_status lane_send_parts(CUstream stream, const struct lane_rectangle *r,
                                const struct pack_piece *piece, int64_t piece_bytes, char *slot,
                                CUdeviceptr device, int64_t device_ld, int64_t *sent, int64_t done)
{
    const int64_t ld = pack_slot_ld(r, piece, device_ld);
    enum gpu_status status = GPU_OK;
    while (status == GPU_OK && *sent < done) {
        struct pack_piece some = pack_part(r, device_ld, piece_bytes, piece, *sent);
        ++*sent;
        while (some.cols > 0 && *sent < done) {
            const struct pack_piece next = pack_part(r, device_ld, piece_bytes, piece, *sent);
            if (!join_part(&some, &next, piece->rows))
                break;
            ++*sent;
        }
        if (some.cols > 0)
            status =
                lane_copy_piece(stream, true, r, &some,
                                slot + pack_part_offset(r, piece, &some, ld), device, device_ld);
    }
    return status;
}
