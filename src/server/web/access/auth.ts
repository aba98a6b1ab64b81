import type { MiddlewareHandler } from 'hono';
import type { AppEnv } from '../app-env.js';
import { ApiError } from '../errors.js';
import { ANYBODY, type ApiKeys, type Caller } from './api-keys.js';

/**
 * Requires `Authorization: Bearer KEY`, `X-Api-Key: KEY` or `Api-Key: KEY`, and notes the caller. Without
 * keys every request is allowed.
 * @param isOpen true for paths that need no key, such as those that orchestrators probe.
 */
export function requireApiKey(keys: ApiKeys, isOpen: (path: string) => boolean): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.set('caller', ANYBODY);
    const inner = c.env?.inner;
    if (inner !== undefined) c.set('caller', inner.caller);
    else if (keys.count > 0 && !isOpen(c.req.path)) {
      // Azure's clients send the key as api-key.
      const apiKey = c.req.header('x-api-key') ?? c.req.header('api-key');
      c.set('caller', callerOf(keys, c.req.header('authorization'), apiKey));
    }
    await next();
  };
}

/** The caller that sent these headers. @throws ApiError 401 where neither has a valid key */
export function callerOf(
  keys: ApiKeys,
  authorization: string | undefined,
  apiKey: string | undefined,
): Caller {
  if (keys.count === 0) return ANYBODY;
  const bearer = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1];
  const given = bearer ?? apiKey;
  const caller = given === undefined ? null : keys.callerOf(given.trim());
  if (caller === null) throw notAuthorized(given !== undefined);
  return caller;
}

/** @throws ApiError 403 where the caller is no admin. */
export function requireAdmin({ name, isAdmin }: Caller, { hasAdmin }: ApiKeys): void {
  if (isAdmin) return;
  const why = hasAdmin
    ? 'others are admins'
    : 'none of this server\'s keys is an admin\'s; "admin": true in the file of --api-key-file makes one';
  throw new ApiError(403, `The API key '${name}' may not do this: it concerns all keys, and ${why}.`, {
    type: 'permission_error',
    code: 'admin_key_required',
  });
}

/** Who may change the folder of models: admins, and where there are no keys this machine. @throws ApiError 403 */
export function requireFolderAdmin(caller: Caller, apiKeys: ApiKeys, isLocal: boolean): void {
  requireAdmin(caller, apiKeys);
  if (apiKeys.count > 0 || isLocal) return;
  throw new ApiError(
    403,
    'Without API keys, models are pulled and deleted from the machine of the server alone; --api-key asks for a key.',
    { type: 'permission_error', code: 'admin_key_required' },
  );
}

function notAuthorized(hasKey: boolean): ApiError {
  const message = hasKey
    ? 'The API key is none of those that this server was started with.'
    : 'This server needs an API key: send it as "Authorization: Bearer KEY" or "X-Api-Key: KEY".';
  return new ApiError(401, message, {
    type: 'authentication_error',
    code: 'invalid_api_key',
    headers: { 'www-authenticate': 'Bearer' },
  });
}
