import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { packageRoot } from '../../../../base/package-info.js';
import { ApiError } from '../../web/errors.js';

/** Content policy: only this server's own files run and nothing else is asked. Swagger UI writes style attributes. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SAFE_HEADERS = { 'referrer-policy': 'no-referrer' };

/** The page. Its paths are relative, so that it works behind a proxy's prefix too. */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Skein API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="api"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const START = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  displayRequestDuration: true,
  // The list of schemas is long; each is shown where it is used.
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  // Would ask a server of Swagger's.
  validatorUrl: null,
});
`;

/** Files of the page by name, with their types. */
const PAGE_FILES = {
  'start.js': 'text/javascript; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
} as const;

export type PageFile = keyof typeof PAGE_FILES;

export function docsPage(): Response {
  return new Response(PAGE, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'no-cache',
      ...SAFE_HEADERS,
    },
  });
}

/** Answers with a file of the page. @throws ApiError 404 where Swagger UI is not installed. */
export async function docsFile(name: PageFile, takesGzip: boolean): Promise<Response> {
  const headers = { 'content-type': PAGE_FILES[name], 'cache-control': 'max-age=3600', ...SAFE_HEADERS };
  if (name === 'start.js') return new Response(START, { headers });
  const { packed, plain } = await swaggerFile(name);
  if (!takesGzip) return new Response(plain(), { headers });
  return new Response(packed, {
    headers: { ...headers, 'content-encoding': 'gzip', vary: 'accept-encoding' },
  });
}

interface SwaggerFile {
  /** The file packed by gzip. */
  packed: Uint8Array<ArrayBuffer>;
  plain(): Uint8Array<ArrayBuffer>;
}

/** Files that were asked for, each read and unpacked once: anybody may ask for them, as often as they like. */
const read = new Map<PageFile, Promise<SwaggerFile>>();

function swaggerFile(name: PageFile): Promise<SwaggerFile> {
  let file = read.get(name);
  if (file === undefined) {
    file = packedFile(name).then((packed) => {
      let unpacked: Uint8Array<ArrayBuffer> | null = null;
      return {
        packed,
        plain: () => {
          unpacked ??= new Uint8Array(gunzipSync(packed));
          return unpacked;
        },
      };
    });
    // A missing file may be there the next time.
    file.catch(() => read.delete(name));
    read.set(name, file);
  }
  return file;
}

/**
 * The compressed file: from the package, where the build has put it, or in a checkout from Swagger UI's own package.
 */
async function packedFile(name: PageFile): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await readFile(join(packageRoot(), 'dist/swagger-ui', `${name}.gz`)));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  try {
    const manifest = createRequire(import.meta.url).resolve('swagger-ui-dist/package.json');
    return new Uint8Array(gzipSync(await readFile(join(dirname(manifest), name))));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  throw new ApiError(
    404,
    `This installation lacks ${name} of Swagger UI; /openapi.json is there without it.`,
    {
      code: 'not_found',
    },
  );
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'MODULE_NOT_FOUND'].includes((error as NodeJS.ErrnoException).code ?? '');
}
