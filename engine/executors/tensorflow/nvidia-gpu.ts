import { existsSync, readdirSync } from 'node:fs';

export interface GpuPlaces {
  platform: NodeJS.Platform;
  /** Device files. */
  devices: string;
  /** The driver of Windows, as its Linux sees it. */
  windowsDriver: string;
}

const PLACES: GpuPlaces = {
  platform: process.platform,
  devices: '/dev',
  windowsDriver: '/usr/lib/wsl/lib/libcuda.so.1',
};

/**
 * Whether an NVIDIA GPU can be reached from here: one listing of a folder, no process, no library. A container that was given
 * a GPU has a numbered device file of it; the driver's version in /proc says nothing there, since that is the host's.
 */
export function hasNvidiaGpu(places: Partial<GpuPlaces> = {}): boolean {
  const { platform, devices, windowsDriver } = { ...PLACES, ...places };
  if (platform !== 'linux') return false;
  try {
    if (readdirSync(devices).some((name) => /^nvidia\d+$/.test(name))) return true;
  } catch {
    // It may not be listed: then nothing is known of a GPU.
  }
  return existsSync(windowsDriver);
}
