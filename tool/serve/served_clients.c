#define _GNU_SOURCE
#include "served_clients.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "gpu/cache/admission.h"
#include "served_call.h"
#include "served_devices.h"
#include "served_users.h"

/* More are refused: each has a thread. */
enum { CLIENTS_MOST = WIRE_CLIENTS_MOST };

#define WAIT_MS 500

struct served_client {
    struct served_client *next;
    int socket;
    struct served_user *user; /* NULL: not known yet */
    struct wire_lane *lane;   /* NULL: none yet */
    struct served_copies copies;
    int64_t area_bytes;
    int pid;
    double came_ms;
    struct device_lane place;
    atomic_int doing;          /* enum wire_doing */
    struct wire_served served; /* under the lock, as `all` is */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct served_client *clients;
static int count;
static struct wire_served all;
static double began_ms;
static atomic_bool ends; /* the server does */

/* ---- The first messages ---- */

static int make_memory(int64_t bytes)
{
    const int memory = memfd_create("accel-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return -1;
    if (ftruncate(memory, (off_t)bytes) == 0 &&
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return memory;
    close(memory);
    return -1;
}

/* memory: -1: none goes with it. */
static bool send_welcome(int socket, const struct wire_welcome *welcome, int memory)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {(void *)(uintptr_t)welcome, sizeof *welcome};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *const right = CMSG_FIRSTHDR(&message);
        right->cmsg_level = SOL_SOCKET;
        right->cmsg_type = SCM_RIGHTS;
        right->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(right), &memory, sizeof memory);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *welcome;
}

static bool make_lane(struct served_client *client, struct wire_welcome *welcome)
{
    const struct served_user *user = client->user;
    const int64_t bytes = WIRE_AREA + client->area_bytes;
    const int memory = make_memory(bytes);
    void *at = memory < 0 ? MAP_FAILED
                          : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_NORESERVE, memory, 0);
    const bool made =
        at != MAP_FAILED && device_places_join(&client->place, user->gpu.id, user->weight,
                                               client->pid, &((struct wire_lane *)at)->load);
    if (!made) {
        if (at != MAP_FAILED)
            munmap(at, (size_t)bytes);
        snprintf(welcome->why, sizeof welcome->why, "the server has no memory for one more client");
        send_welcome(client->socket, welcome, -1);
    } else {
        pthread_mutex_lock(&lock);
        client->lane = at;
        served_copies_init(&client->copies, at, client->socket);
        pthread_mutex_unlock(&lock);
        welcome->area_bytes = client->area_bytes;
        welcome->chunked_from = served_copies_least();
        welcome->info = *gpu_info(served_devices_first());
        welcome->info.chosen = NULL;
        welcome->info.share = served_devices_count();
    }
    const bool welcomed = made && send_welcome(client->socket, welcome, memory);
    if (memory >= 0)
        close(memory);
    return welcomed;
}

static void add_served(struct wire_served *sum, const struct wire_served *more)
{
    sum->calls += more->calls;
    sum->refused += more->refused;
    sum->up_bytes += more->up_bytes;
    sum->down_bytes += more->down_bytes;
    sum->busy_ms += more->busy_ms;
    sum->waited_ms += more->waited_ms;
}

/* Tells who asks, if that is of this build, what has been done so far. */
static void answer(const struct served_client *asks, struct wire_hello *hello)
{
    struct wire_state *const state = calloc(1, sizeof *state);
    hello->magic = WIRE_MAGIC;
    if (!state || wire_is_other(hello)) {
        free(state);
        return;
    }
    const double now_ms = accel_now_ms();
    wire_hello(&state->server);
    state->pid = getpid();
    strcpy(state->gpu, served_devices_count() > 0 ? gpu_info(served_devices_first())->name
                                                  : "the GPU is starting");
    pthread_mutex_lock(&lock);
    state->up_ms = now_ms - began_ms;
    const bool sees_all = served_user_sees_all(asks->user);
    state->all = sees_all ? all : asks->user->left;
    for (const struct served_client *c = clients; c; c = c->next) {
        if (!c->lane || state->clients == WIRE_CLIENTS_MOST || (!sees_all && c->user != asks->user))
            continue;
        state->client[state->clients++] = (struct wire_client){
            c->pid, atomic_load(&c->doing), c->user->uid, now_ms - c->came_ms, c->served};
        if (!sees_all)
            add_served(&state->all, &c->served);
    }
    pthread_mutex_unlock(&lock);
    state->users = served_users_count();
    served_devices_describe(state, sees_all ? NULL : &asks->user->gpu.id);
    send(asks->socket, state, sizeof *state, MSG_NOSIGNAL);
    free(state);
}

static bool greet(struct served_client *client)
{
    struct wire_hello hello;
    struct wire_welcome welcome = {.area_bytes = 0};
    wire_limit(client->socket);
    wire_hello(&welcome.server);
    client->user = served_user_join(client->socket, &client->pid);
    if (!client->user || recv(client->socket, &hello, sizeof hello, 0) != (ssize_t)sizeof hello)
        return false;
    if (hello.magic == WIRE_ASKS) {
        answer(client, &hello);
        return false;
    }
    if (wire_is_other(&hello)) {
        snprintf(welcome.why, sizeof welcome.why, "the server is of another version");
        send_welcome(client->socket, &welcome, -1);
        return false;
    }
    welcome.starting = served_devices_count() == 0;
    return welcome.starting ? send_welcome(client->socket, &welcome, -1) && false
                            : make_lane(client, &welcome);
}

/* ---- Its calls ---- */

static void count_call(struct served_client *client, const struct wire_reply *reply, double ms,
                       double waited_ms)
{
    const struct wire_served call = {.calls = reply->status == GPU_OK,
                                     .refused = reply->status != GPU_OK,
                                     .up_bytes = reply->up_bytes,
                                     .down_bytes = reply->down_bytes,
                                     .busy_ms = ms,
                                     .waited_ms = waited_ms};
    pthread_mutex_lock(&lock);
    add_served(&client->served, &call);
    add_served(&all, &call);
    pthread_mutex_unlock(&lock);
}

static void list_kept(const struct served_client *client)
{
    struct gpu_device *const device = served_devices_at(device_places_device(&client->place));
    served_call_list_kept(&client->lane->kept, device, client->user->gpu.id);
}

/* Counts it after the client has gone on. */
static void serve_call(struct served_client *client)
{
    struct wire_lane *const lane = client->lane;
    struct wire_request request;
    struct wire_reply reply = {.status = GPU_UNSUPPORTED};
    struct accel_call call;
    struct served_run run = {.user = &client->user->gpu,
                             .lane = &client->place,
                             .copies = &client->copies,
                             .most_ms = client->user->wait_most_ms,
                             .doing = &client->doing};
    const double begun_ms = accel_now_ms();
    atomic_store(&client->doing, WIRE_WAITS);
    memcpy(&request, &lane->request, sizeof request);
    __asm__ volatile("" ::: "memory"); /* the copy alone is looked at */
    if (served_call_read(&call, &request, client->user->gpu.id, (char *)lane + WIRE_AREA,
                         client->area_bytes))
        served_call_run(&reply, &run, &call, &request);
    if (request.cache & WIRE_CACHES)
        list_kept(client);
    memcpy(&lane->reply, &reply, sizeof reply);
    turns_pass(&lane->turns, TURN_CLIENT);
    if (served_call_asks(&request))
        progress_raise(&lane->copies.news, atomic_load(&lane->copies.news.count) + 1);
    atomic_store(&client->doing, WIRE_NOTHING);
    count_call(client, &reply, accel_now_ms() - begun_ms, run.waited_ms);
}

static void serve(struct served_client *client)
{
    struct turns *const turns = &client->lane->turns;
    for (;;) {
        const enum turn now = turns_await(turns, TURN_SERVER, WAIT_MS);
        if (now == TURN_OVER || (now != TURN_SERVER && wire_is_closed(client->socket)))
            return;
        if (now == TURN_SERVER && served_copies_are_lost(&client->copies)) {
            turns_pass(turns, TURN_OVER); /* the client opens another lane */
            return;
        }
        if (now == TURN_SERVER) {
            serve_call(client);
        } else {
            served_copies_rest(&client->copies, client->area_bytes);
            list_kept(client);
        }
        if (atomic_load(&ends))
            return; /* the client has its result, and finds that nobody takes the next call */
    }
}

static void leave(struct served_client *client)
{
    pthread_mutex_lock(&lock);
    struct served_client **at = &clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    count--;
    if (client->user)
        add_served(&client->user->left, &client->served);
    pthread_mutex_unlock(&lock);
    device_places_leave(&client->place);
    if (client->user)
        served_user_leave(client->user);
    if (client->lane) {
        served_copies_unpin(&client->copies);
        admission_forget(client->lane, WIRE_AREA + client->area_bytes);
        if (!served_copies_are_lost(&client->copies))
            munmap(client->lane, (size_t)(WIRE_AREA + client->area_bytes));
    }
    close(client->socket);
    free(client);
}

static void *run_client(void *argument)
{
    struct served_client *const client = argument;
    if (greet(client))
        serve(client);
    leave(client);
    return NULL;
}

void served_client_begin(int socket, int64_t area_bytes)
{
    struct served_client *client = malloc(sizeof *client);
    pthread_t thread;
    pthread_attr_t detached;
    if (!client || served_clients() >= CLIENTS_MOST) {
        free(client);
        close(socket);
        return;
    }
    *client = (struct served_client){
        .socket = socket, .area_bytes = area_bytes, .came_ms = accel_now_ms()};
    pthread_mutex_lock(&lock);
    client->next = clients;
    clients = client;
    count++;
    pthread_mutex_unlock(&lock);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, run_client, client) != 0)
        leave(client);
    pthread_attr_destroy(&detached);
}

/* ---- All of them ---- */

int served_clients(void)
{
    pthread_mutex_lock(&lock);
    const int now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

void served_clients_beat(void)
{
    pthread_mutex_lock(&lock);
    if (began_ms == 0)
        began_ms = accel_now_ms();
    for (struct served_client *c = clients; c; c = c->next)
        if (c->lane)
            atomic_fetch_add(&c->lane->beats, 1);
    pthread_mutex_unlock(&lock);
    device_places_tell();
}

static void end_lanes(void)
{
    pthread_mutex_lock(&lock);
    for (struct served_client *c = clients; c; c = c->next)
        if (c->lane && atomic_load(&c->doing) == WIRE_NOTHING)
            turns_pass(&c->lane->turns, TURN_OVER);
        else if (!c->lane)
            shutdown(c->socket, SHUT_RDWR);
    pthread_mutex_unlock(&lock);
}

/* Calls that have no place yet get none: their clients compute them. Those that run end first. A
 * client may begin one at this moment, so all are told again and again. */
void served_clients_end(void)
{
    const struct timespec again = {.tv_nsec = 20 * 1000000};
    atomic_store(&ends, true);
    device_places_close();
    while (served_clients() > 0) {
        end_lanes();
        nanosleep(&again, NULL);
    }
}
