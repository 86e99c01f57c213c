-- Everything that a cell reads of a network is in the context's own spec, so nothing must
-- travel with it.
--
-- Not even its Location: that is cluster-scoped, and goes to the cells that serve it by a
-- policy. Following it from contexts as well would have each context's binding fight the
-- policy's for the same Work, and take the Location away with the first context that goes.
--
-- Karmada joins the dependencies that several customizations name, so an operator who wants
-- something else to follow contexts adds a customization for that.

function GetDependencies(desiredObj)
  return {}
end
