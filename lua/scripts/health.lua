function InterpretHealth(observedObj)
  return ailment(reflect(observedObj)) == nil
end
