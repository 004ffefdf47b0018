# Holt. `make help` lists the targets; CONTRIBUTING.md says how the tree is laid out.
BUILD ?= release
PREFIX ?= /usr/local
VERSION := 0.1.0

# What a build may leave out: the front ends for E2B and MCP.
E2B ?= 1
MCP ?= 1
LEFT_OUT := $(if $(filter 0,$(E2B)),e2b) $(if $(filter 0,$(MCP)),mcp)

# A plain `make` puts the binaries in build/; the other variants keep to themselves below it: build/asan,
# build/core without the front ends, build/no-mcp, build/asan-core.
VARIANT := $(filter-out release,$(BUILD)) $(if $(filter 2,$(words $(LEFT_OUT))),core,$(addprefix no-,$(LEFT_OUT)))
OUT := build$(addprefix /,$(subst $() ,-,$(strip $(VARIANT))))
OBJ := $(OUT)/obj
# Structs and field tables of the messages in proto/, made by tools/generate-messages.
GENERATED := $(OUT)/generated

WARN := -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wimplicit-fallthrough -Wswitch-enum -Wcast-qual \
	-Wdate-time -Werror=return-type -Werror=int-conversion -Werror=incompatible-pointer-types \
	-Werror=implicit-function-declaration $(if $(CI),-Werror)
COMMON := -std=gnu17 -D_GNU_SOURCE -DHOLT_VERSION='"$(VERSION)"' -DHOLT_E2B=$(E2B) -DHOLT_MCP=$(MCP) \
	-Isrc -I$(GENERATED) -Iinclude -g $(WARN) \
	-fvisibility=hidden -MMD -MP

# Objects are -fPIC because some of them go into libholt.so as well.
CFLAGS_release := -O2 -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fPIC
LDFLAGS_release := -pie -Wl,-z,relro,-z,now
CFLAGS_debug := -O0 -fPIC
LDFLAGS_debug := -pie
CFLAGS_asan := -O1 -fPIC -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LDFLAGS_asan := -pie -fsanitize=address,undefined
CFLAGS_tsan := -O1 -fPIC -fsanitize=thread
LDFLAGS_tsan := -pie -fsanitize=thread
CFLAGS_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined
ifeq ($(BUILD),fuzz)
CC := clang
endif

# Builds for finding errors abort where a thread takes locks out of order (base/lock.h).
CFLAGS := $(COMMON) $(CFLAGS_$(BUILD)) $(if $(filter-out release,$(BUILD)),-DLOCK_CHECKS)
LDFLAGS := $(LDFLAGS_$(BUILD))
LDLIBS_daemon := -lmicrohttpd -lwslay -lhttp_parser -ljansson -larchive -lsqlite3 -lcurl -lssl -lcrypto -lz -lzstd -lm -lpthread
LDLIBS_cli := -lhttp_parser -ljansson -lm -lpthread
# The first number is that of the ABI, which include/holt.h promises to keep.
SONAME := libholt.so.$(firstword $(subst ., ,$(VERSION)))

# One short line a step; V=1 shows the whole command instead.
step = $(if $(V),,@echo "$(1) $(2)" && )

sources = $(filter-out $(LEFT_OUT:%=src/cli/%/%),$(wildcard $(foreach m,$(1),src/$(m)/*.c src/$(m)/*/*.c)))
modules = $(patsubst src/%.c,$(OBJ)/%.o,$(call sources,$(1))) $(if $(filter wire,$(1)),$(TABLES)) \
	$(if $(filter e2b,$(1)),$(ENVD_TABLES))
PROTOS := $(sort $(shell find proto -name '*.proto'))
TABLES := $(OBJ)/generated/wire/holt_v1.o
ENVD_TABLES := $(OBJ)/generated/e2b/envd_messages.o
STAMPS := $(GENERATED)/wire/holt_v1.stamp $(GENERATED)/e2b/envd_messages.stamp
HOST_MODULES := base kernel wire net ssh gateway agent view store runtime remote host toolbox builder auth http console api $(filter-out $(LEFT_OUT),e2b mcp)
CLIENT_MODULES := base wire client

# holt-init has no glibc: a trapped CPUID costs 7 us on such machines and glibc's start makes 68.
# Its compiler sees musl's headers and, beside them, only the kernel's own.
GUEST_CC := musl-gcc
UAPI := $(OUT)/uapi
GUEST_SOURCES := $(call sources,guest) $(wildcard src/wire/file.c src/wire/frame.c src/wire/message.c) \
	$(addprefix src/base/,buf.c clock.c err.c io.c random.c xalloc.c text/base64.c text/hex.c \
		files/file_copy.c files/file_entry.c files/tree.c files/tree_sink.c files/tree_source.c) \
	$(wildcard $(addprefix src/kernel/,caps.c clone.c fds.c mount.c netns.c path.c pty.c vclone.c))
GUEST_OBJECTS := $(patsubst src/%.c,$(OUT)/obj-guest/%.o,$(GUEST_SOURCES))
GUEST_CFLAGS := $(COMMON) -isystem $(UAPI) -Os -fno-pie -fno-asynchronous-unwind-tables \
	-ffunction-sections -fdata-sections
GUEST_LDFLAGS := -static -no-pie -Wl,--gc-sections -Wl,-z,noexecstack

# holt-tools is static too, as it runs on the files of a sandbox; but with glibc, whose string functions
# and threads are what searching is about. It is the same in every variant.
TOOLS_CC := gcc
TOOLS_SOURCES := $(call sources,tools) $(addprefix src/wire/,file.c frame.c tool.c) \
	$(addprefix src/base/,buf.c clock.c io.c lock.c random.c thread.c xalloc.c text/hex.c text/near.c text/utf8.c)
TOOLS_OBJECTS := $(patsubst src/%.c,$(OUT)/obj-tools/%.o,$(TOOLS_SOURCES))
TOOLS_CFLAGS := $(COMMON) -O2 -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fno-pie \
	-ffunction-sections -fdata-sections
TOOLS_LDFLAGS := -static -no-pie -Wl,--gc-sections -Wl,-z,noexecstack

# holt-prove runs in sandboxes of any template, too.
PROVE_OBJECTS := $(patsubst src/%.c,$(OUT)/obj-tools/%.o,$(call sources,prove))

BINARIES := $(OUT)/holt $(OUT)/holtd $(OUT)/holt-init $(OUT)/holt-tools $(OUT)/holt-prove $(OUT)/holt-net $(OUT)/holt-image $(OUT)/holt-view $(OUT)/holt-git
# Below each kind of test, folders mirror src/.
tests = $(sort $(shell find tests/$(1) -name '$(2)' $(foreach m,$(LEFT_OUT),-not -path '*/$(m)/*')))
FUZZ_SOURCES := $(call tests,fuzz,*_fuzz.c)
UNIT_TESTS := $(patsubst %.c,$(OUT)/%,$(call tests,unit,*_test.c))
KERNEL_TESTS := $(patsubst %.c,$(OUT)/%,$(call tests,kernel,*_test.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(OUT)/fuzz/%,$(FUZZ_SOURCES))
REPLAYS := $(patsubst tests/fuzz/%_fuzz.c,$(OUT)/tests/replay/%_replay,$(FUZZ_SOURCES))
BENCHES := $(patsubst bench/%.c,$(OUT)/bench/%,$(wildcard bench/*.c))

# The web console is the same in every variant, and the only part that needs Node.js: `all` leaves it out.
CONSOLE := build/console/index.html
CONSOLE_PACKAGES := console/node_modules/.installed
CONSOLE_SOURCES := $(shell find console -name node_modules -prune -o -path console/gen -prune -o -type f -print)

.PHONY: all serve setup check test tests unit-tests soak test-online test-agents fuzzers lint format bench install clean help \
	console console-types console-shots
.DELETE_ON_ERROR:

all: $(BINARIES) $(OUT)/libholt.a $(if $(filter release,$(BUILD)),$(OUT)/libholt.so) ## build holt, holtd, holt-init, holt-tools, holt-prove, holt-net, holt-image, holt-view, holt-git and libholt

serve: setup ## install what is missing, build, and start holtd in the foreground
	@$(MAKE) --no-print-directory all
	$(OUT)/holtd

setup:
	@tools/setup build

console: ## build the web console (installs Node.js if it is missing)
	@tools/setup console
	@$(MAKE) --no-print-directory $(CONSOLE)

test: ## install what the tests need, build, run every test
	@tools/setup test
	@$(MAKE) --no-print-directory $(CONSOLE)
	@tools/test

check: unit-tests ## the tests and checks that need no privileges; on a built tree, in a minute
	@failed=0; HOLT_BUILD_DIR=$(OUT) tools/lint --quick || failed=1; \
		tools/test --quick $(or $(notdir $(OUT:build=)),release) || failed=1; exit $$failed

unit-tests: all $(UNIT_TESTS) $(REPLAYS)

tests: unit-tests $(KERNEL_TESTS)

soak: ## the long form of some tests: ten thousand sandboxes, 500 random programs, 10 GiB of output, 5,000 idle sandboxes, 200 power cuts, half an hour of mixed work, 100,000 connections, 200 deaths of holt-net, 1,000 streams of models, 200 deaths in deep pauses
	@tools/setup test
	@$(MAKE) --no-print-directory all $(filter %/soak_test %/property_test %/viewfs/attack_test %/viewfs/operations_test,$(KERNEL_TESTS)) $(filter %/view/model_test,$(UNIT_TESTS))
	SOAK_ROUNDS=10000 $(filter %/soak_test,$(KERNEL_TESTS))
	PROPERTY_PROGRAMS=500 $(filter %/host/property_test,$(KERNEL_TESTS))
	HOLT_BUILD_DIR=$(OUT) VIEW_PROPERTY_ROUNDS=5000 $(filter %/viewfs/property_test,$(KERNEL_TESTS))
	HOLT_BUILD_DIR=$(OUT) VIEW_PROGRAMS=20000 $(filter %/viewfs/operations_test,$(KERNEL_TESTS))
	HOLT_BUILD_DIR=$(OUT) VIEW_RACE_ROUNDS=200000 $(filter %/viewfs/attack_test,$(KERNEL_TESTS))
	VIEW_PAIRS=10000000 $(filter %/view/model_test,$(UNIT_TESTS))
	SLOW_GIB=10 $(shell find tests/system -name slow_test)
	SLOW_END_FILES=150000 unshare --mount --propagation private tests/system/host/slow_end_test
	IDLE_SANDBOXES=5000 unshare --mount --propagation private tests/system/host/idle_test
	POWER_CUTS=200 unshare --mount --propagation private tests/system/host/power_test
	MIXED_SECONDS=1800 unshare --mount --propagation private tests/system/host/mixed_test
	NET_CONNECTIONS=100000 tests/system/net/egress_test
	SECRET_DEATHS=200 tests/system/secret/deaths_test
	LLM_STREAMS=1000 tests/system/llm/gateway_test
	DEEP_DEATHS=200 unshare --mount --propagation private tests/system/remote/deep_pause_test
	S3_DEATHS=100 unshare --mount --propagation private tests/system/remote/s3_pause_test

test-online: ## install packages with the real npm and apt-get, with learned rules; build templates; needs their registries
	@tools/setup test
	@$(MAKE) --no-print-directory all
	HOLT_BUILD_DIR=$(OUT) unshare --mount --propagation private tests/online/install_test
	HOLT_BUILD_DIR=$(OUT) unshare --mount --propagation private tests/online/template_test

test-agents: ## run the npm packages of claude-code, codex, opencode and openclaw in sandboxes; needs the registry of npm
	@tools/setup test
	@$(MAKE) --no-print-directory all
	AGENTS="claude-code codex opencode openclaw" HOLT_BUILD_DIR=$(OUT) tests/system/agent/packages_test

fuzzers: $(FUZZERS) ## build the libFuzzer targets (BUILD=fuzz)

lint: ## formatting, static analysis, module rule, man pages against --help
	@tools/setup lint
	@tools/lint

format: ## reformat the tree
	clang-format -i $$(git ls-files -c -o --exclude-standard '*.c' '*.h')

bench: ## measure against peers in the same run; JSON lines in build/bench*.jsonl
	@tools/setup bench
	@$(MAKE) --no-print-directory all $(BENCHES)
	@failed=0; for each in run exec turns archive remote images api files tools search e2b interpreter fairness network secrets view codebase llm runtimes console; do bench/$$each || failed=1; done; exit $$failed

install: all console ## install below PREFIX (DESTDIR is honoured)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/holt $(DESTDIR)$(PREFIX)/lib/pkgconfig \
		$(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/systemd/system \
		$(DESTDIR)$(PREFIX)/share/holt \
		$(addprefix $(DESTDIR)$(PREFIX)/share/man/,man1 man3 man5 man8)
	install -m 755 $(OUT)/holt $(OUT)/holtd $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(OUT)/holt-init $(OUT)/holt-tools $(OUT)/holt-net $(OUT)/holt-image \
		$(OUT)/holt-view $(OUT)/holt-git $(OUT)/holt-prove $(DESTDIR)$(PREFIX)/libexec/holt/
	install -m 644 $(OUT)/libholt.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(OUT)/libholt.so $(DESTDIR)$(PREFIX)/lib/libholt.so.$(VERSION)
	ln -sf libholt.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libholt.so
	install -m 644 share/prices-*.json $(DESTDIR)$(PREFIX)/share/holt/
	install -m 644 include/*.h $(DESTDIR)$(PREFIX)/include/
	sed 's|@PREFIX@|$(PREFIX)|;s|@VERSION@|$(VERSION)|' tools/libholt.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/libholt.pc
	sed 's|@PREFIX@|$(PREFIX)|' tools/holt.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/holt.service
	install -m 644 tools/holt.socket.in $(DESTDIR)$(PREFIX)/lib/systemd/system/holt.socket
	install -d $(DESTDIR)$(PREFIX)/lib/sysusers.d
	install -m 644 tools/holt.sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/holt.conf
	install -d $(DESTDIR)$(PREFIX)/share/holt/agents $(DESTDIR)$(PREFIX)/share/holt/console/assets
	install -m 644 agents/*.conf $(DESTDIR)$(PREFIX)/share/holt/agents/
	install -m 644 build/console/index.html* $(DESTDIR)$(PREFIX)/share/holt/console/
	install -m 644 build/console/assets/* $(DESTDIR)$(PREFIX)/share/holt/console/assets/
	for page in man/*.[1358]; do install -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/; done

clean: ## remove build/
	rm -rf build console/gen console/node_modules

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

# The value of a variable, for the linters.
print-%:
	@: $(info $($*))

$(OUT)/holtd: $(call modules,$(HOST_MODULES) daemon) $(OBJ)/git/message.o
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_daemon)

$(OUT)/holt: $(call modules,$(CLIENT_MODULES) cli) $(OBJ)/kernel/path.o
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_cli)

$(OUT)/holt-net: $(call modules,base egress gateway net ssh) $(addprefix $(OBJ)/kernel/,caps.o confine.o fds.o route.o)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lhttp_parser -ljansson -lnghttp2 -lssl -lcrypto -lz -lm -lpthread

$(OUT)/holt-image: $(call modules,base image) $(OBJ)/net/address.o $(addprefix $(OBJ)/kernel/,caps.o confine.o fds.o)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcurl -ljansson -lcrypto -lm -lpthread

$(OUT)/holt-view: $(call modules,base view viewfs) $(addprefix $(OBJ)/kernel/,caps.o confine.o fds.o mount.o path.o)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson -lm -lpthread

$(OUT)/holt-git: $(call modules,base git) $(addprefix $(OBJ)/kernel/,caps.o confine.o fds.o mount.o)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lgit2 -ljansson -lm -lpthread

# Both have nothing that a program could see but holt_*: its own names are its own.
$(OUT)/libholt.a: $(call modules,$(CLIENT_MODULES))
	$(call step,AR,$@)rm -f $@ && $(LD) -r -o $(OUT)/libholt.o $^ && \
		objcopy --localize-hidden $(OUT)/libholt.o && $(AR) rcs $@ $(OUT)/libholt.o

$(OUT)/libholt.so: $(call modules,$(CLIENT_MODULES)) tools/libholt.map
	$(call step,LD,$@)$(CC) $(CFLAGS) $(filter-out -pie,$(LDFLAGS)) -shared -Wl,-soname,$(SONAME) \
		-Wl,--version-script=tools/libholt.map -o $@ $(filter %.o,$^) $(LDLIBS_cli)

$(OUT)/holt-init: $(GUEST_OBJECTS)
	$(call step,LD,$@)$(GUEST_CC) $(GUEST_LDFLAGS) -o $@ $^

$(OUT)/obj-guest/%.o: src/%.c Makefile | $(UAPI)
	@mkdir -p $(@D)
	$(call step,CC,$< (guest))$(GUEST_CC) $(GUEST_CFLAGS) -c -o $@ $<

$(OUT)/holt-tools: $(TOOLS_OBJECTS)
	$(call step,LD,$@)$(TOOLS_CC) $(TOOLS_LDFLAGS) -o $@ $^ -lpcre2-8 -lpthread

$(OUT)/holt-prove: $(PROVE_OBJECTS)
	$(call step,LD,$@)$(TOOLS_CC) $(TOOLS_LDFLAGS) -o $@ $^

$(OUT)/obj-tools/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(call step,CC,$< (tools))$(TOOLS_CC) $(TOOLS_CFLAGS) -c -o $@ $<

$(UAPI):
	@mkdir -p $@
	@ln -sfn /usr/include/linux $@/linux
	@ln -sfn /usr/include/asm-generic $@/asm-generic
	@ln -sfn /usr/include/$(shell $(CC) -print-multiarch)/asm $@/asm

$(GENERATED)/protos: $(PROTOS)
	@mkdir -p $(@D)
	$(call step,PROTOC,$@)protoc -Iproto --include_imports --descriptor_set_out=$@ $(PROTOS)

# Files that would stay as they are keep their time; the stamp has the time of the last look.
$(GENERATED)/wire/holt_v1.stamp: PACKAGES := holt.v1=msg
$(GENERATED)/e2b/envd_messages.stamp: PACKAGES := process=envd filesystem=envd
$(STAMPS): $(GENERATED)/protos tools/generate-messages
	$(call step,GEN,$(@:.stamp=.h))tools/generate-messages $< $(@:.stamp=) $(PACKAGES)
	@touch $@

$(GENERATED)/%.h $(GENERATED)/%.c: $(GENERATED)/%.stamp ;

$(OBJ)/generated/%.o: $(GENERATED)/%.c Makefile
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) $(CFLAGS) -c -o $@ $<

# With other flags all of them are others.
$(OBJ)/%.o: src/%.c Makefile | $(STAMPS)
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) $(CFLAGS) -c -o $@ $<

$(OBJ)/cli/template/template_build.o: $(wildcard templates/build templates/*/*)

# The lock keeps two makes from installing or building at the same time.
$(CONSOLE_PACKAGES): console/package-lock.json
	@mkdir -p build
	@tools/check-node
	$(call step,NPM,console)cd console && flock ../build/console.lock \
		npm ci --ignore-scripts --prefer-offline --fetch-retries 5 --no-audit --no-fund --loglevel error
	@touch $@

$(CONSOLE): $(CONSOLE_PACKAGES) $(CONSOLE_SOURCES) $(PROTOS)
	@mkdir -p build
	$(call step,BUNDLE,$(@D))flock build/console.lock node console/build.mjs $(@D)

console-shots: all ## take pictures of every page of the console at three widths, in build/console-shots
	@tools/setup test
	unshare --mount --propagation private tests/console/run tests/console/shots.mjs

console-types: $(CONSOLE_PACKAGES)
	@mkdir -p build
	$(call step,TSC,console)flock build/console.lock node console/build.mjs --generate && \
		console/node_modules/.bin/tsc --noEmit -p console

# Tests link every module but the mains, so that a test may reach what it is about. They take it
# from an archive: a linker works for half a second on all objects.
TEST_OBJECTS := $(filter-out $(OBJ)/tools/main.o $(OBJ)/egress/main.o,$(call modules,$(HOST_MODULES) egress client tools)) \
	$(addprefix $(OBJ)/image/,challenge.o manifest.o) $(OBJ)/git/message.o
TEST_ARCHIVE := $(OUT)/tests.a
TEST_LIBS := $(LDLIBS_daemon) -lnghttp2 -lz -lpcre2-8
# Objects that only tests have are kept for the next link.
.SECONDARY:

$(TEST_ARCHIVE): $(TEST_OBJECTS)
	$(call step,AR,$@)rm -f $@ && $(AR) rcsT $@ $^

$(OUT)/obj-tests/%.o: tests/%.c Makefile | $(STAMPS)
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) $(CFLAGS) -Itests -c -o $@ $<

$(OUT)/tests/%: $(OUT)/obj-tests/%.o $(TEST_ARCHIVE)
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

# The corpus of each fuzz target is replayed in the normal tests, without libFuzzer.
$(OUT)/tests/replay/%_replay: $(OUT)/obj-tests/fuzz/%_fuzz.o $(OUT)/obj-tests/fuzz/replay.o $(TEST_ARCHIVE)
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(OUT)/fuzz/%: $(OUT)/obj-tests/fuzz/%.o $(TEST_ARCHIVE)
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

# What every measured sandbox runs: no libc, so that the payload's own start costs next to nothing.
$(OUT)/bench/true: bench/true.c
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) -O2 $(WARN) -static -nostdlib -ffreestanding -fno-stack-protector -o $@ $<

# Runs in a sandbox whose template has no libraries.
$(OUT)/bench/hostile: bench/hostile.c
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) -O2 -std=gnu17 -D_GNU_SOURCE $(WARN) -static -o $@ $<

# The worker's functions as they are in holt-tools.
$(OUT)/bench/search_holt: bench/search_holt.c $(filter-out $(OUT)/obj-tools/tools/main.o,$(TOOLS_OBJECTS))
	@mkdir -p $(@D)
	$(call step,LD,$@)$(TOOLS_CC) $(TOOLS_CFLAGS) $(TOOLS_LDFLAGS) -o $@ $(filter %.c %.o,$^) -lpcre2-8 -lpthread

# Starts holt-view and makes masks as the host does.
$(OUT)/bench/view_holt: bench/view_holt.c $(call modules,base kernel view) \
		$(addprefix $(OBJ)/,host/view/view.o host/view/start.o host/view/mask_fill.o runtime/program.o)
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -ljansson -lm -lpthread

$(OUT)/bench/%: bench/%.c $(call modules,$(CLIENT_MODULES))
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(LDLIBS_cli)

-include $(shell find build -name '*.d' 2>/dev/null)
