import * as z from 'zod';
import { component } from '../../../schemas/fields.js';

export const invocationSchema = component(
  'Invocation',
  z.looseObject({}),
  'The body of one of the other routes, which its fields tell.',
);
