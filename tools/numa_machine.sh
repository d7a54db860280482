#!/usr/bin/env bash
# numa_machine.sh COMMAND: runs a shell command in a virtual machine with two processors, each with a memory node of its own.
# It sees this machine's files, which it cannot change, at their paths; /root and /run are empty there. QEMU emulates the
# processors, so this shows where pages lie, and says nothing about speed.
#
# QEMU, a kernel and busybox are fetched as Debian packages and unpacked in build/numa_machine, but not installed.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
folder=$root/build/numa_machine
system=$folder/system
megabytes_per_node=1536
packages=(qemu-system-x86 busybox-static linux-image-amd64)
# They would start services, or set up a machine's start.
not_needed='systemd|dbus|udev|pam|initramfs|klibc'

# Prints the packages, the kernel's own, and what else they need that this machine lacks.
names() {
  printf '%s\n' "${packages[@]}"
  apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p'
  apt-get install -s -y --no-install-recommends "${packages[@]}" | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
}

fetch() {
  local names package
  mapfile -t names < <(names | grep -Ev "$not_needed" | sort -u)
  rm -rf "$folder"
  mkdir -p "$folder/packages"
  (cd "$folder/packages" && apt-get -q download "${names[@]}") >&2
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/unpacked"; done
  rm -r "$folder/packages"
  mv "$folder/unpacked" "$system"
}

# Makes the first file system: busybox, the drivers that show this machine's files, and the command.
make_first_files() {
  local version=$1 number=10 driver
  rm -rf "$folder/first"
  mkdir -p "$folder/first/bin" "$folder/first/drivers" "$folder/first/host"
  install -m 755 "$system/bin/busybox" "$folder/first/bin/"
  depmod -b "$system" "$version"
  for driver in virtio_pci 9pnet_virtio 9p; do modprobe -d "$system" -S "$version" --show-depends "$driver"; done |
    awk '!seen[$2]++ { print $2 }' | while read -r driver; do
    cp "$driver" "$folder/first/drivers/$((number++)).ko"
  done
  printf '%s\n' "$2" >"$folder/first/command"
  cat >"$folder/first/init" <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
for driver in /drivers/*.ko; do $b insmod $driver; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host
$b mount -t proc none /host/proc
$b mount -t sysfs none /host/sys
$b mount -t devtmpfs none /host/dev
$b mount -t tmpfs none /host/root
$b mount -t tmpfs none /host/run
$b cp /command /host/run/command
HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin $b chroot /host /bin/bash /run/command
$b poweroff -f
INIT
  chmod +x "$folder/first/init"
  (cd "$folder/first" && find . | "$system/bin/busybox" cpio -o -H newc 2>/dev/null) >"$folder/first.cpio"
}

[[ $# -eq 1 ]] || { echo "usage: tools/numa_machine.sh COMMAND" >&2; exit 2; }
[[ -d $system ]] || fetch
kernel=$(echo "$system"/boot/vmlinuz-*)
make_first_files "${kernel##*/vmlinuz-}" "$1"
memory() { printf '%s' "-object memory-backend-ram,id=m$1,size=${megabytes_per_node}M -numa node,cpus=$1,memdev=m$1"; }
# shellcheck disable=SC2046 # words are meant
LD_LIBRARY_PATH=$system/usr/lib/x86_64-linux-gnu:$system/lib/x86_64-linux-gnu "$system/usr/bin/qemu-system-x86_64" \
  -L "$system/usr/share/qemu" -L "$system/usr/share/seabios" -accel tcg,thread=multi -cpu max \
  -smp 2 -m $((2 * megabytes_per_node)) $(memory 0) $(memory 1) -nodefaults -no-reboot -display none -serial stdio \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  -kernel "$kernel" -initrd "$folder/first.cpio" -append "console=ttyS0 quiet loglevel=1 panic=-1" </dev/null |
  tr -d '\r' | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | grep -v 'reboot: Power down'
