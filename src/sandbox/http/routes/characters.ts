import { type Context, Hono } from 'hono';
import { charactersOf, findCharacter, registerCharacter, viewCharacter } from '../../service/characters.js';
import { readCharacterOrder } from '../../service/image-order.js';
import { LISTS } from '../../world/choices.js';
import type { World } from '../../world/world.js';
import { admit, createJob, fieldsIn, once, succeed } from '../caller.js';

/** POST, GET and DELETE /v1/characters. */
export function characterRoutes(world: World): Hono {
  const door = { scope: 'characters:create' } as const;
  return new Hono()
    .post('/v1/characters', (context) => {
      const mode = modeOf(context);
      if (mode !== 'register') return createJob(world, context, { door, read: readCharacterOrder });
      const caller = admit(world, context, door);
      const { id, isReplay } = once(world, context, {
        caller,
        kind: 'character',
        make: (fields) => registerCharacter(world, caller.account.id, fields).id,
      });
      const character = findCharacter(world, caller.account.id, id);
      const headers = isReplay ? { 'idempotency-replayed': 'true' } : {};
      return succeed({ character: viewCharacter(world, character) }, headers);
    })
    .get('/v1/characters', (context) => {
      const { account } = admit(world, context, { scope: 'characters:read' });
      const characters = charactersOf(world.state, account.id).map((character) => viewCharacter(world, character));
      return succeed({ [LISTS.characters]: characters });
    })
    .get('/v1/characters/:id', (context) => {
      const { account } = admit(world, context, { scope: 'characters:read' });
      return succeed({ character: viewCharacter(world, findCharacter(world, account.id, context.req.param('id'))) });
    })
    .delete('/v1/characters/:id', (context) => {
      const { account } = admit(world, context, { scope: 'characters:delete' });
      const { id } = findCharacter(world, account.id, context.req.param('id'));
      world.state.characters.delete(id);
      return succeed({ character_id: id, deleted: true });
    });
}

/** The mode that a body names; what cannot be read is refused by the door it leads to, after the key was looked at. */
function modeOf(context: Context): unknown {
  try {
    return fieldsIn(context).raw('mode');
  } catch {
    return undefined;
  }
}
