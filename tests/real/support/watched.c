/* Tells what a program opens, connects to, looks up and starts: one line each, appended to the file that WATCHED_LOG names.
 * Loaded before the C library (LD_PRELOAD). Paths are whole, as they were asked for. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void say(const char *what, const char *before, const char *text)
{
	const char *file = getenv("WATCHED_LOG");
	char line[2 * PATH_MAX + 32];
	int kept = errno, at, length;

	if (!file)
		return;
	length = snprintf(line, sizeof line, "%s %s%s\n", what, before, text ? text : "");
	/* Not by open(), which is told of here. */
	at = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (at >= 0) {
		if (length > 0)
			(void)!write(at, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
		close(at);
	}
	errno = kept;
}

static void opened(int directory, const char *path)
{
	char before[PATH_MAX] = "", link[64];
	ssize_t length;

	if (path && path[0] != '/') {
		if (directory == AT_FDCWD)
			snprintf(link, sizeof link, "/proc/self/cwd");
		else
			snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
		length = readlink(link, before, sizeof before - 2);
		if (length > 0)
			before[length] = '/';
	}
	say("open", before, path);
}

/* The mode stands there if a file may be made. */
#define MODE(flags, last) \
	mode_t mode = 0; \
	if ((flags) & (O_CREAT | O_TMPFILE)) { \
		va_list more; \
		va_start(more, last); \
		mode = va_arg(more, mode_t); \
		va_end(more); \
	}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		MODE(flags, flags) \
		opened(AT_FDCWD, path); \
		return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
	}

#define OPENAT(name) \
	int name(int directory, const char *path, int flags, ...) \
	{ \
		MODE(flags, flags) \
		opened(directory, path); \
		return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name))(directory, path, flags, mode); \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int connect(int socket, const struct sockaddr *address, socklen_t length)
{
	char host[INET6_ADDRSTRLEN] = "", text[INET6_ADDRSTRLEN + 16];
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	switch (address->sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
		snprintf(text, sizeof text, "%s:%d", host, ntohs(four->sin_port));
		say("connect", "", text);
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
		snprintf(text, sizeof text, "[%s]:%d", host, ntohs(six->sin6_port));
		say("connect", "", text);
		break;
	case AF_UNIX:
		say("connect", "unix ", ((const struct sockaddr_un *)address)->sun_path);
		break;
	default:
		say("connect", "", "elsewhere");
	}
	return ((int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect"))(socket, address, length);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	say("resolve", "", node);
	return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo"))(
		node, service, hints, found);
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
	say("start", "", path);
	return ((int (*)(const char *, char *const[], char *const[]))dlsym(RTLD_NEXT, "execve"))(path, arguments, environment);
}

int execvp(const char *file, char *const arguments[])
{
	say("start", "", file);
	return ((int (*)(const char *, char *const[]))dlsym(RTLD_NEXT, "execvp"))(file, arguments);
}

#define SPAWN(name) \
	int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes, \
		char *const arguments[], char *const environment[]) \
	{ \
		say("start", "", file); \
		return ((int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], \
			char *const[]))dlsym(RTLD_NEXT, #name))(pid, file, actions, attributes, arguments, environment); \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)
