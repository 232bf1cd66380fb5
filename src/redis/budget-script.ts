// The rules of src/budget/budget-state.ts as one Lua script, which Redis runs as one step. One table of cases holds both to
// the same behaviour. Time is the Redis server's, unless the first value holds it for a test.
//
//   meta     hash        'start' of the period; sums: 'spent', 'reserved', of it 'open'; 'unknown' open ones without a price
//   pending  hash        unsettled creates by key: s(tatus), t(okens, -1 for unknown), c(lass), h(older)
//   leases   sorted set  open creates by the time until which they are waited for
//   settled  hash        settled creates by key: t(okens), j(ob)
//   order    sorted set  settled creates by their time
//   jobs     hash        keys by job
//   prices   hash        the last quote of each class; kept from period to period
import { PRICE_MARGIN, REMEMBERED_MS, UNKNOWN_LEASES } from '../budget/budget-state.js';

/** The parts of a budget in Redis, in the order of the script's keys. */
export const BUDGET_KEYS = ['meta', 'pending', 'leases', 'settled', 'order', 'jobs', 'prices'] as const;

/** Values: the held time or an empty string, then the scope and the step as JSON. Gives the fields of a BudgetReply. */
export const BUDGET_SCRIPT = `
local meta, pending, leases, settled, order, jobs, prices = unpack(KEYS)
local scope, step = cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local DAY = 86400000

local function given(value) if value == cjson.null then return nil end return value end
local function text(number) return string.format('%.17g', number) end
local function sum(name) return tonumber(redis.call('HGET', meta, name) or 0) end
local function add(name, by) if by ~= 0 then redis.call('HSET', meta, name, text(sum(name) + by)) end end

-- The first day of the month, and of the next one, as days since the epoch.
local function daysTo(year, month)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local ofEra = year - era * 400
  local ofYear = math.floor((153 * ((month + 9) % 12) + 2) / 5)
  return era * 146097 + ofEra * 365 + math.floor(ofEra / 4) - math.floor(ofEra / 100) + ofYear - 719468
end
local function monthAt(time)
  local days = math.floor(time / DAY)
  local year = 1970 + math.floor(days / 365.2425)
  if daysTo(year + 1, 1) <= days then year = year + 1 elseif daysTo(year, 1) > days then year = year - 1 end
  local month = 12
  while daysTo(year, month) > days do month = month - 1 end
  if month == 12 then return daysTo(year, 12), daysTo(year + 1, 1) end
  return daysTo(year, month), daysTo(year, month + 1)
end
local function periodAt(time, start)
  if scope.per == 'total' then return 0, nil end
  if scope.per == 'day' then
    local day = math.floor(time / DAY) * DAY
    return day, day + DAY
  end
  if scope.per == 'month' then
    local first, next = monthAt(time)
    return first * DAY, next * DAY
  end
  if start > 0 and time < start + scope.per then return start, start + scope.per end
  return 0, nil
end

local started = sum('start')
local start = periodAt(now, started)
if start > started or (start == 0 and started > 0 and type(scope.per) == 'number') then
  redis.call('DEL', meta, pending, leases, settled, order, jobs)
  redis.call('HSET', meta, 'start', text(start))
  started = start
end

local function load(key)
  local create = redis.call('HGET', pending, key)
  return create and cjson.decode(create)
end
-- Puts a create, or takes it away, and keeps the sums.
local function put(key, create, before)
  local function count(one, sign)
    local tokens = math.max(0, one.t)
    add('reserved', sign * tokens)
    if one.s ~= 'open' then return end
    add('open', sign * tokens)
    if one.t < 0 then add('unknown', sign) end
  end
  if before then count(before, -1) end
  if not create then
    redis.call('HDEL', pending, key)
  else
    count(create, 1)
    redis.call('HSET', pending, key, cjson.encode(create))
  end
  if not create or create.s ~= 'open' then redis.call('ZREM', leases, key) end
end
local function highestPrice()
  local highest = 0
  for _, tokens in ipairs(redis.call('HVALS', prices)) do highest = math.max(highest, tonumber(tokens)) end
  return highest
end
local function priceOf(class) return tonumber(redis.call('HGET', prices, class) or nil) end
local function lose(key, create)
  local tokens = create.t
  if tokens < 0 then tokens = priceOf(create.c) or highestPrice() end
  put(key, { s = 'lost', t = tokens, c = create.c, h = create.h }, create)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now)) do
  local create = load(key)
  if create then lose(key, create) end
end

local function answer(outcome, tokens)
  local _, ends = periodAt(math.max(now, started), started)
  if ends then
    for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, string.format('%.0f', math.max(0, ends - now) + 40 * DAY)) end
  end
  local cost = tokens and text(tokens) or ''
  return { outcome, cost, text(sum('spent')), text(sum('reserved')), text(started), ends and text(ends) or '' }
end

if step.op == 'reserve' then
  local function lease(key, tokens)
    local leases_ = tokens < 0 and ${UNKNOWN_LEASES} or 1
    redis.call('ZADD', leases, text(now + leases_ * step.leaseMs), key)
  end
  local done = redis.call('HGET', settled, step.key)
  if done then return answer('held', cjson.decode(done).t) end
  local create = load(step.key)
  if create then
    put(step.key, { s = 'open', t = create.t, c = create.c, h = create.h }, create)
    lease(step.key, create.t)
    return answer('held', create.t >= 0 and create.t or nil)
  end
  local tokens = priceOf(step.priceClass) or given(step.guessedTokens)
  if not tokens and step.refusesUnknown then return answer('unknown') end
  local left = scope.maxTokens - sum('spent') - sum('reserved')
  if (tokens and tokens > left) or (not tokens and left <= 0) then return answer('refused', tokens) end
  local open, mayGo = sum('open'), nil
  if not tokens then mayGo = sum('unknown') == 0
  else mayGo = redis.call('ZCARD', leases) == 0 or ${PRICE_MARGIN} * (open + tokens) <= left + open end
  if not mayGo then return answer('wait', tokens) end
  if started == 0 and type(scope.per) == 'number' then
    started = now
    redis.call('HSET', meta, 'start', text(now))
  end
  put(step.key, { s = 'open', t = tokens or -1, c = step.priceClass, h = step.holder })
  lease(step.key, tokens or -1)
  return answer('reserved', tokens)
end

if step.op == 'settle' then
  local quoted = given(step.quotedTokens)
  if quoted then
    redis.call('HSET', prices, step.priceClass, text(quoted))
    if sum('unknown') > 0 then
      for _, key in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
        local create = load(key)
        if create and create.t < 0 and create.c == step.priceClass then
          put(key, { s = 'open', t = quoted, c = create.c, h = create.h }, create)
        end
      end
    end
  end
  local create = load(step.key)
  if create then
    local tokens = given(step.tokens) or (create.t >= 0 and create.t) or highestPrice()
    if step.isEarlier then tokens = 0 end
    put(step.key, nil, create)
    add('spent', tokens)
    redis.call('HSET', settled, step.key, cjson.encode({ t = tokens, j = step.jobId }))
    redis.call('ZADD', order, text(now), step.key)
    redis.call('HSET', jobs, step.jobId, step.key)
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', order, '-inf', text(now - ${REMEMBERED_MS}), 'LIMIT', 0, 100)) do
      local old = redis.call('HGET', settled, key)
      if old then redis.call('HDEL', jobs, cjson.decode(old).j) end
      redis.call('HDEL', settled, key)
      redis.call('ZREM', order, key)
    end
  end
elseif step.op == 'refund' then
  local key = redis.call('HGET', jobs, step.jobId)
  local done = key and redis.call('HGET', settled, key)
  if done then
    done = cjson.decode(done)
    add('spent', -done.t)
    redis.call('HSET', settled, key, cjson.encode({ t = 0, j = done.j }))
  end
elseif step.op == 'release' or step.op == 'keep' then
  local create = load(step.key)
  if create and step.op == 'keep' then
    if create.s == 'open' then lose(step.key, create) end
  elseif create and (not given(step.holder) or (create.s == 'open' and create.h == step.holder)) then
    put(step.key, nil, create)
  end
end
return answer('done')
`;
