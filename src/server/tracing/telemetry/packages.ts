import { createRequire } from 'node:module';
import { join } from 'node:path';
import { defaultCacheDirectory } from '../../../../base/home-folder.js';
import { findPackages } from '../../../../base/optional-packages.js';

/** Packages that tracing needs, with the versions that `skein setup tracing` installs. Those from 3.0 and 0.300 on need Node.js 22. */
export const TRACING_PACKAGES = {
  '@opentelemetry/api': '1.9.1',
  '@opentelemetry/sdk-trace-base': '2.12.1',
  '@opentelemetry/exporter-trace-otlp-http': '0.223.1',
} as const;

export const TRACING_MISSING = `Tracing needs OpenTelemetry's packages, which are not here: "skein setup tracing" installs them, or "npm install @opentelemetry/sdk-trace-base@2 @opentelemetry/exporter-trace-otlp-http@0.223" in the folder of your program.`;

/** The folder of `skein setup tracing`: one for each user. */
export function tracingSetupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'opentelemetry');
}

/** Loads packages of OpenTelemetry. */
export type LoadPackage = (name: string) => unknown;

/** Where the packages are: see findPackages. null: nowhere. Loads nothing. */
export function findTracingPackages(cacheDirectory?: string): LoadPackage | null {
  const require = findPackages(Object.keys(TRACING_PACKAGES), tracingSetupFolder, cacheDirectory);
  if (require === null) return null;
  // The SDK's own dependencies are where it looks for them.
  const ofSdk = createRequire(require.resolve('@opentelemetry/sdk-trace-base'));
  return (name) => (name in TRACING_PACKAGES ? require(name) : ofSdk(name));
}
