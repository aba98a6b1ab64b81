import { routesWith } from '../../web/route.js';
import type { ServerContext } from '../server-context.js';

/** Routes of the server itself, and those in which protocols meet. */
export const defineRoute = routesWith<ServerContext>();
