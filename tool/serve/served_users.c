#define _GNU_SOURCE
#include "served_users.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* So that one user of several does not have all lanes. */
enum { LANES_MOST = WIRE_CLIENTS_MOST / 4 * 3 };

static const struct served_rules *rules;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct served_user *users; /* they stay */

void served_users_prepare(const struct served_rules *with)
{
    rules = with;
}

static bool may_be_client(uint32_t uid)
{
    return rules->everyone || uid == 0 || uid == geteuid();
}

static double find_weight(uint32_t uid)
{
    for (int i = rules->weights - 1; i >= 0; i--) /* the last word counts */
        if (rules->weight[i].uid == uid)
            return rules->weight[i].weight;
    return 1;
}

/* With the lock. NULL: there is no memory. */
static struct served_user *find_user(uint32_t uid)
{
    struct served_user *user = users;
    while (user && user->uid != uid)
        user = user->next;
    if (user || !(user = malloc(sizeof *user)))
        return user;
    /* 0 is nobody's number: see struct gpu_user. */
    *user = (struct served_user){.gpu = {(uint64_t)uid + 1, rules->memory_most},
                                 .uid = uid,
                                 .weight = find_weight(uid),
                                 .wait_most_ms = rules->wait_most_ms,
                                 .next = users};
    return users = user;
}

struct served_user *served_user_join(int socket, int *pid)
{
    uint32_t uid;
    if (!wire_peer(socket, &uid, pid) || !may_be_client(uid))
        return NULL;
    pthread_mutex_lock(&lock);
    struct served_user *user = find_user(uid);
    if (user && rules->everyone && user->lanes >= LANES_MOST)
        user = NULL;
    else if (user)
        user->lanes++;
    pthread_mutex_unlock(&lock);
    return user;
}

int served_users_count(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const struct served_user *user = users; user; user = user->next)
        count += user->lanes > 0;
    pthread_mutex_unlock(&lock);
    return count;
}

void served_user_leave(struct served_user *user)
{
    pthread_mutex_lock(&lock);
    user->lanes--;
    pthread_mutex_unlock(&lock);
}

bool served_user_sees_all(const struct served_user *user)
{
    return user->uid == 0 || user->uid == geteuid();
}
