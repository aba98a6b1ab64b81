import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { DASHBOARD_FILES, type DashboardFile, FONT } from '../../dashboard/dashboard-files.js';
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

const { 'index.html': _, ...files } = DASHBOARD_FILES;
const fileName = z.union([z.enum(Object.keys(files) as (keyof typeof files)[]), z.string().regex(FONT)], {
  error: 'expected a file of the dashboard',
});

export const dashboardFileRoute = defineRoute({
  method: 'get',
  path: '/dashboard/{file}',
  tags: ['Documentation'],
  summary: "The dashboard's scripts, styles and icon",
  open: true,
  params: z.object({ file: about(fileName, 'The name of the file.') }),
  responses: async () => (await import('../answers.js')).dashboardFileResponses(),
  handle: async ({ params, takesGzip, knownTags }) =>
    (await import('../../dashboard/dashboard-page.js')).dashboardFile(
      params.file as DashboardFile,
      takesGzip,
      knownTags,
    ),
});
