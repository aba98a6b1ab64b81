import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { packageRoot } from '../../../base/package-info.js';
import { ApiError } from '../web/errors.js';
import { type DashboardFile, typeOf } from './dashboard-files.js';

/**
 * Content policy: only this server's own files run and nothing else is asked; pictures that the reader attaches are shown from memory. The
 * browser refuses text that would become HTML or the address of a script (Trusted Types), so that not even a mistake in the page can turn a
 * model's output into it. The one policy of Trusted Types starts two workers, which read PDF files and code, and knows no other address.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "font-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types skein-worker',
].join('; ');

interface Asset {
  packed: Uint8Array<ArrayBuffer>;
  /** Strong validator of the packed bytes. */
  tag: string;
}

/** Files that were asked for, each read once. */
const assets = new Map<DashboardFile, Promise<Asset>>();

/**
 * Answers with a file of the page. @param knownTags the request's If-None-Match.
 * @throws ApiError 404 where the package was not built.
 */
export async function dashboardFile(
  name: DashboardFile,
  takesGzip: boolean,
  knownTags: string | undefined,
): Promise<Response> {
  const { packed, tag } = await assetOf(name);
  const headers = {
    'content-type': typeOf(name),
    'content-security-policy': POLICY,
    'referrer-policy': 'no-referrer',
    // The browser asks each time, for a short answer: a new version must not run with old files.
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    etag: takesGzip ? tag : `W/${tag}`,
  };
  if (knownTags?.includes(tag)) return new Response(null, { status: 304, headers });
  if (!takesGzip) return new Response(new Uint8Array(gunzipSync(packed)), { headers });
  return new Response(packed, { headers: { ...headers, 'content-encoding': 'gzip' } });
}

function assetOf(name: DashboardFile): Promise<Asset> {
  let asset = assets.get(name);
  if (asset === undefined) {
    asset = readAsset(name);
    // A later build may put the file there.
    asset.catch(() => assets.delete(name));
    assets.set(name, asset);
  }
  return asset;
}

async function readAsset(name: DashboardFile): Promise<Asset> {
  try {
    const packed = new Uint8Array(await readFile(join(packageRoot(), 'dist/dashboard', `${name}.gz`)));
    const digest = createHash('sha256').update(packed).digest('base64url').slice(0, 22);
    return { packed, tag: `"${digest}"` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new ApiError(
      404,
      `This installation lacks ${name} of the dashboard: npm run build makes it. The API is at /v1, its description at /docs.`,
      { code: 'not_found' },
    );
  }
}
