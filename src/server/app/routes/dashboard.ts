import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import type { DashboardFile } from '../../dashboard/dashboard-page.js';
import { defineRoute } from '../server-context.js';

export const dashboardRoute = defineRoute({
  method: 'get',
  path: '/',
  tags: ['Documentation'],
  summary: 'The dashboard: a chat, and what is in flight',
  open: true,
  responses: async () => (await import('../answers.js')).dashboardResponses(),
  handle: async ({ takesGzip, knownTags }) =>
    (await import('../../dashboard/dashboard-page.js')).dashboardFile('index.html', takesGzip, knownTags),
});

const files = [
  'page.js',
  'pdf-worker.js',
  'cmaps.bin',
  'theme.js',
  'page.css',
  'icon.svg',
] as const satisfies DashboardFile[];

export const dashboardFileRoute = defineRoute({
  method: 'get',
  path: '/dashboard/{file}',
  tags: ['Documentation'],
  summary: "The dashboard's scripts, styles and icon",
  open: true,
  params: z.object({ file: about(z.enum(files), 'The name of the file.') }),
  responses: async () => (await import('../answers.js')).dashboardFileResponses(),
  handle: async ({ params, takesGzip, knownTags }) =>
    (await import('../../dashboard/dashboard-page.js')).dashboardFile(params.file, takesGzip, knownTags),
});
