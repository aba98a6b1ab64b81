import { existsSync, readdirSync } from 'node:fs';

export interface GpuPlaces {
  platform: NodeJS.Platform;
  /** Folder of device files. */
  devices: string;
  /** File of the Windows driver as WSL shows it. */
  windowsDriver: string;
}

const PLACES: GpuPlaces = {
  platform: process.platform,
  devices: '/dev',
  windowsDriver: '/usr/lib/wsl/lib/libcuda.so.1',
};

/**
 * True if an NVIDIA GPU can be reached from here: one listing of a folder, no process, no library. A container that was given
 * a GPU has a numbered device file of it; the driver's version in /proc says nothing there, since it is the
 * host's.
 */
export function hasNvidiaGpu(places: Partial<GpuPlaces> = {}): boolean {
  const { platform, devices, windowsDriver } = { ...PLACES, ...places };
  if (platform !== 'linux') return false;
  try {
    if (readdirSync(devices).some((name) => /^nvidia\d+$/.test(name))) return true;
  } catch {
    // The folder cannot be listed: then no GPU is known.
  }
  return existsSync(windowsDriver);
}
