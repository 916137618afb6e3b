/*
 * The part of MPI that High Performance Linpack uses, for one process: what passes messages ends
 * the program.
 */
#ifndef ACCEL_PROOF_MPI_H
#define ACCEL_PROOF_MPI_H

typedef int MPI_Comm, MPI_Datatype, MPI_Request;
typedef long MPI_Aint;
typedef struct {
    int none;
} MPI_Status;

enum { MPI_SUCCESS = 0, MPI_UNDEFINED = -1 };
enum { MPI_COMM_NULL, MPI_COMM_WORLD };
enum { MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT, MPI_DOUBLE };

int MPI_Abort(MPI_Comm, int);
int MPI_Address(void *, MPI_Aint *);
int MPI_Comm_free(MPI_Comm *);
int MPI_Comm_rank(MPI_Comm, int *);
int MPI_Comm_size(MPI_Comm, int *);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *);
int MPI_Iprobe(int, int, MPI_Comm, int *, MPI_Status *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Issend(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Send(void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Sendrecv(void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
                 MPI_Status *);
int MPI_Ssend(void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Type_commit(MPI_Datatype *);
int MPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype *);
int MPI_Type_free(MPI_Datatype *);
int MPI_Type_struct(int, int *, MPI_Aint *, MPI_Datatype *, MPI_Datatype *);
int MPI_Type_vector(int, int, int, MPI_Datatype, MPI_Datatype *);
int MPI_Wait(MPI_Request *, MPI_Status *);
double MPI_Wtime(void);

#endif
